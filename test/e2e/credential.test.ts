import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createKernel } from '../../adapters/compose.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandLine } from '../support/command-line.ts';
import { askFor, commandsOf, denyProgram, type E2eOptions, e2e, scenario } from '../support/e2e.ts';
import { TestBroker } from '../support/test-broker.ts';

const ADA = { tenant: 'default', user: 'ada' };
const SECRET = 'Tq7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0oWx2';
const GATE = { kind: 'credential', ref: 'github' };
/** A command that is credentialed by `github`, and tells by the workspace how often it has run. */
const push = scenario('push', [['sh', '-c', 'echo x >> pushes; wc -l < pushes']]);
const PROGRAMS = { sh: 'github' };

const world = (broker: TestBroker, options: E2eOptions) =>
  e2e({ scenario: push, capacity: { heartbeatMs: 100 }, ...options, kernel: { adapters: [broker.manifest] } });

describe.each(PLACEMENTS)('a missing credential under %s', (placement) => {
  it('parks before anybody is asked, survives a restart, and goes on when it is there: then the ask, then the command, once', async () => {
    const broker = new TestBroker(PROGRAMS);
    await using first = await world(broker, { placement, ask: ['shell.exec'] });
    const parked = await first.turn('push it');
    expect(parked.run).toMatchObject({ state: 'parked', gate: GATE });
    expect(parked.calls.at(-1)).toMatchObject({ capability: 'shell.exec', state: 'prepared', permit: undefined });
    expect(parked.decisions.at(-1)).toMatchObject({ decision: { effect: 'ask' }, input: { credential: 'missing', recipe: 'github' } });
    expect(await first.kernel.listApprovals({ limit: 9 })).toEqual([]);
    const { id } = parked.run;

    await using second = await first.reopen();
    expect((await second.kernel.showRun(id)).run).toMatchObject({ state: 'parked', gate: GATE });
    // Another's is not ada's.
    broker.provide({ ...ADA, user: 'bo' }, 'github', SECRET);
    broker.provide(ADA, 'github', SECRET);
    const woken = await second.event(id, ({ type }) => type === 'run.woken');
    expect(woken.data).toEqual({ gate: 'credential', recipe: 'github' });
    await second.event(id, ({ type }) => type === 'approval.requested');
    const asked = await second.until(id);
    expect(asked.run.gate?.kind).toBe('approval');
    const approval = asked.run.gate?.ref ?? '';
    expect((await second.kernel.showApproval(approval)).approval).toMatchObject({ ceiling: { leases: [{ recipe: 'github' }] } });
    await second.kernel.answerApproval({ approval, answer: 'approve' });
    const ended = await second.until(id, ['completed', 'failed']);
    expect(ended.run.state).toBe('completed');
    expect(commandsOf(ended).map(({ stdout }) => stdout)).toEqual(['1\n']);
  });

  it('a denied call does not wait for it, and is told nothing of it', async () => {
    await using made = await world(new TestBroker(PROGRAMS), { placement });
    await denyProgram(made, 'sh');
    const view = await made.turn('push it');
    expect(view.run.state).toBe('completed');
    const told = view.calls.find(({ capability }) => capability === 'shell.exec');
    expect(told?.outcome).toMatchObject({ kind: 'denied', reasons: [{ code: 'program_denied' }] });
    const events = (await made.kernel.events(0, { run: view.run.id }, 500)).map(({ type, data }) => ({ type, data }));
    expect(JSON.stringify([told, events])).not.toContain('github');
  });

  it('(control) with the credential there from the start nothing waits', async () => {
    const broker = new TestBroker(PROGRAMS);
    broker.provide(ADA, 'github', SECRET);
    await using made = await world(broker, { placement });
    const view = await made.turn('push it');
    expect([view.run.state, commandsOf(view).map(({ stdout }) => stdout)]).toEqual(['completed', ['1\n']]);
    expect(view.calls.find(({ capability }) => capability === 'shell.exec')?.effectClass).toBe('once');
  });
});

describe('a missing credential on the command line', () => {
  it('is exit 5 with gate and recipe on the last line; `runs show` tells the hint and what has to happen', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'ow-credential-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    cpSync('policies', join(dir, 'policies'), { recursive: true });
    askFor(join(dir, 'policies'), ['shell.exec']);
    writeFileSync(join(dir, 'outwork.yaml'), `stateDir: state\npolicy: { dir: policies }\nmodel: { scenario: ${push} }\n`);
    const broker = new TestBroker(PROGRAMS);
    const outwork = (...args: string[]) => commandLine(dir, args, (config) => createKernel(config, { adapters: [broker.manifest] }));
    expect((await outwork('user', 'add', 'ada')).code).toBe(0);
    const { code, stderr } = await outwork('run', '--user', 'ada', 'push it');
    expect([code, stderr.trim().split('\n').at(-1)]).toEqual([5, 'parked: credential github']);
    const [{ id }] = JSON.parse((await outwork('runs', 'ls', '--json')).stdout) as [{ id: string }];
    const shown = (await outwork('runs', 'show', id)).stdout;
    expect(shown).toContain('ada provides the credential github');
    expect(shown).toMatch(/gate +credential github\n +A credential is missing: github\. outwork secret set github/);
    expect(JSON.parse((await outwork('approval', 'ls', '--json')).stdout)).toEqual([]);
  });
});
