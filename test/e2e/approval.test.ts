import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { openAdministration } from '../../adapters/administration.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { APPROVED_DIR } from '../../core/approval/pinned-files.ts';
import type { DeliveryItem } from '../../core/index.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { askFor, commandsOf, type E2e, type E2eOptions, e2e, scenario } from '../support/e2e.ts';

const ada = { tenant: 'default', user: 'ada' };
const write = (world: E2e, path: string, text: string) => world.kernel.importFile(ada, path, Readable.from([Buffer.from(text)]));
const ENDED = ['completed', 'failed', 'cancelled'] as const;

/** Posts a turn and waits until it is parked on an ask. */
async function asked(world: E2e): Promise<{ run: string; approval: string }> {
  const { run } = await world.turn('do it');
  expect(run).toMatchObject({ state: 'parked', gate: { kind: 'approval' } });
  return { run: run.id, approval: run.gate?.ref ?? '' };
}

const stateOf = async (world: E2e, approval: string) => (await world.kernel.showApproval(approval)).approval.state;
/** How often the command of `counting` has run, told by the workspace. */
const counting = scenario('count', [['sh', '-c', 'echo x >> count; wc -l < count']]);
const countedBy = (view: Awaited<ReturnType<E2e['until']>>) => commandsOf(view).map(({ stdout }) => stdout.trim());

describe.each(PLACEMENTS)('an ask under %s', (placement) => {
  it('parks, is shown with the bytes it pins, and runs those bytes once when approved, whatever the file holds by then', async () => {
    await using world = await e2e({ placement, ask: ['shell.exec'], scenario: scenario('deploy', [['sh', 'deploy.sh']]) });
    await write(world, 'deploy.sh', 'echo approved >> log; cat log; id -u\n');
    const { run, approval } = await asked(world);
    expect(await world.kernel.listApprovals({ states: ['pending'], limit: 9 })).toMatchObject([{ id: approval, actor: 'ada' }]);
    expect(await world.kernel.showApproval(approval)).toMatchObject({
      files: [{ path: 'deploy.sh', text: 'echo approved >> log; cat log; id -u\n' }],
      approval: { ceiling: { startedBy: placement === 'host-loop-shell' ? 'kernel' : 'executor', leases: [], hosts: [] } },
    });
    await write(world, 'deploy.sh', 'echo changed >> log; cat log\n');
    await world.kernel.answerApproval({ approval, answer: 'approve' });
    const view = await world.until(run, ENDED);
    expect(view.run.state).toBe('completed');
    expect(commandsOf(view)).toMatchObject([{ exitCode: 0, stdout: 'approved\n1000\n' }]);
    expect(await stateOf(world, approval)).toBe('consumed');
  });

  it('BL-118 BL-120 survives a restart, is answered once, and happens once', async () => {
    await using first = await e2e({ placement, ask: ['shell.exec'], scenario: counting });
    const { run, approval } = await asked(first);
    await using second = await first.reopen();
    expect((await second.kernel.showRun(run)).run).toMatchObject({ state: 'parked', gate: { ref: approval } });
    const answers = await Promise.allSettled([
      second.kernel.answerApproval({ approval, answer: 'approve' }),
      second.kernel.answerApproval({ approval, answer: 'approve' }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const view = await second.until(run, ENDED);
    expect([view.run.state, countedBy(view)]).toEqual(['completed', ['1']]);
    await expect(second.kernel.answerApproval({ approval, answer: 'approve' })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('BL-118 a denial after a restart reaches the model as a result; nothing has run, and the run goes on', async () => {
    const heard: string[] = [];
    const onModel = async (request: { messages: readonly unknown[] }) => void heard.push(JSON.stringify(request.messages.at(-1)));
    await using first = await e2e({ placement, ask: ['shell.exec'], scenario: counting, onModel });
    const { run, approval } = await asked(first);
    await using second = await first.reopen();
    await second.kernel.answerApproval({ approval, answer: 'deny', note: 'use the other script' });
    const view = await second.until(run, ENDED);
    expect([view.run.state, countedBy(view)]).toEqual(['completed', []]);
    expect(heard.at(-1)).toContain('approval_denied: A person denied this call: use the other script');
  });

  it('expires when nobody answers, and the model is told', async () => {
    await using world = await e2e({ placement, ask: ['shell.exec'], scenario: counting, capacity: { approvalAnswerMs: 1500 } });
    const { run, approval } = await asked(world);
    await world.event(run, ({ type }) => type === 'approval.expired');
    const view = await world.until(run, ENDED);
    expect(view.calls.find(({ capability }) => capability === 'shell.exec')?.outcome).toMatchObject({
      kind: 'denied',
      reasons: [{ code: 'approval_expired' }],
    });
    await expect(world.kernel.answerApproval({ approval, answer: 'approve' })).rejects.toMatchObject({ code: 'approval_expired' });
  });
});

describe.each(PLACEMENTS)('kill -9 of the kernel between answer and call, under %s', (placement) => {
  let child: ChildProcess | undefined;
  let stateDir: string | undefined;

  afterEach(() => {
    child?.kill('SIGKILL');
    if (stateDir !== undefined) rmSync(stateDir, { recursive: true });
  });

  it('leaves the approval to the next kernel, which carries the call out once', async () => {
    stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
    const options: E2eOptions = { placement, ask: ['shell.exec'], scenario: counting, stateDir };
    const first = await e2e(options);
    const { run, approval } = await asked(first);
    await first.kernel.close();
    // Answered while no kernel runs: nothing can carry it out before the next one has claimed the run.
    const rows = await openAdministration(first.kernel.config);
    await rows.answerApproval({ approval, answer: 'approve' });
    await rows.close();
    rmSync(first.policyDir, { recursive: true });
    const store = await openSqliteStore({ file: join(stateDir, 'outwork.db') });
    child = spawn(process.execPath, ['test/support/kernel-child.ts', JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
    // Its sandbox is cold: between claim and call lies the start of one.
    while ((await store.runs.get(run))?.state !== 'running') await new Promise((wake) => setTimeout(wake, 2));
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect((await store.approvals.get(approval))?.state).toBe('approved');
    await store.close();
    await using world = await e2e(options);
    const view = await world.until(run, ENDED);
    expect([view.run.state, countedBy(view)]).toEqual(['completed', ['1']]);
    expect(await stateOf(world, approval)).toBe('consumed');
  });
});

describe('an ask', () => {
  it('BL-124 is held to the rules of the moment: a deny that came after the ask goes before the approval', async () => {
    await using world = await e2e({ ask: ['shell.exec'], scenario: scenario('curl', [['curl', 'http://a.example']]) });
    const { run, approval } = await asked(world);
    const before = (await world.kernel.policyStatus()).digests.data;
    const file = join(world.policyDir, 'data', 'call.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^denied_programs: \[\]$/m, 'denied_programs: [curl]'));
    while ((await world.kernel.policyStatus()).digests.data === before)
      await world.kernel.eventsChanged(await world.kernel.eventsHead(), 100);
    await world.kernel.answerApproval({ approval, answer: 'approve' });
    const view = await world.until(run, ENDED);
    expect(view.calls.find(({ capability }) => capability === 'shell.exec')?.outcome).toMatchObject({
      kind: 'denied',
      reasons: [{ code: 'program_denied' }],
    });
    expect(await stateOf(world, approval)).toBe('withdrawn');
  });

  it('BL-124 under rules that changed is asked again, and the old answer counts for nothing', async () => {
    await using world = await e2e({ ask: ['shell.exec'], scenario: counting });
    const { run, approval } = await asked(world);
    const before = (await world.kernel.policyStatus()).digests.data;
    askFor(world.policyDir, ['shell.exec', 'fs.write']);
    while ((await world.kernel.policyStatus()).digests.data === before)
      await world.kernel.eventsChanged(await world.kernel.eventsHead(), 100);
    await world.kernel.answerApproval({ approval, answer: 'approve' });
    const requested = await world.event(run, ({ type, data }) => type === 'approval.requested' && data.approval !== approval);
    const again = String(requested.data.approval);
    await world.until(run, ['parked']);
    expect([await stateOf(world, approval), await stateOf(world, again)]).toEqual(['withdrawn', 'pending']);
    await world.kernel.answerApproval({ approval: again, answer: 'approve' });
    const view = await world.until(run, ENDED);
    expect(countedBy(view)).toEqual(['1']);
  });

  it('reaches those who may answer as a delivery of its own kind, once, over a restart too', async () => {
    const taken: DeliveryItem[] = [];
    const delivery = {
      port: 'delivery',
      name: 'recorder',
      create: () => ({ name: 'recorder', deliver: async (item: DeliveryItem) => void taken.push(item) }),
    } as const;
    await using first = await e2e({ ask: ['shell.exec'], scenario: counting, kernel: { adapters: [delivery] } });
    const { run, approval } = await asked(first);
    await first.event(run, ({ type }) => type === 'delivery.sent');
    await using second = await first.reopen();
    await second.kernel.answerApproval({ approval, answer: 'approve' });
    const view = await second.until(run, ENDED);
    await second.event(run, ({ type, data }) => type === 'delivery.sent' && data.delivery === taken.at(-1)?.id && taken.length === 2);
    expect(taken.map(({ kind }) => kind)).toEqual(['approval', 'reply']);
    expect(taken[0]).toMatchObject({
      approval,
      run: view.run.id,
      user: 'ada',
      body: expect.stringContaining(`outwork approval approve ${approval}`),
    });
  });

  it('ends with its run: a cancelled one leaves nothing to answer', async () => {
    await using world = await e2e({ ask: ['shell.exec'], scenario: counting });
    const { run, approval } = await asked(world);
    await world.kernel.cancelRun(run);
    expect((await world.until(run, ENDED)).run.state).toBe('cancelled');
    await expect(world.kernel.answerApproval({ approval, answer: 'approve' })).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe.each(PLACEMENTS)('approved bytes under %s', (placement) => {
  it('cannot be changed by what they run as; what runs them reads and runs them', async () => {
    const attack = [
      'echo hacked > "$0" && echo wrote',
      'rm -f "$0" && echo removed',
      'mv "$0" "$0.old" && echo moved',
      `mkdir ${APPROVED_DIR}/x && echo made`,
      `ln -s /etc/passwd ${APPROVED_DIR}/y && echo linked`,
      'chmod 777 "$0" && echo opened',
      'echo "$0"; stat -c "%u %a" "$0"',
    ].join('\n');
    await using world = await e2e({ placement, ask: ['shell.exec'], scenario: scenario('attack', [['bash', 'attack.sh']]) });
    await write(world, 'attack.sh', attack);
    const { run, approval } = await asked(world);
    const { sha256 = '' } = (await world.kernel.showApproval(approval)).files[0] ?? {};
    await world.kernel.answerApproval({ approval, answer: 'approve' });
    const [outcome] = commandsOf(await world.until(run, ENDED));
    expect(outcome).toMatchObject({ exitCode: 0, stdout: `${APPROVED_DIR}/${sha256}/attack.sh\n0 555\n` });
  });

  it('(control) the same script in the workspace changes itself', async () => {
    await using world = await e2e({ placement, scenario: scenario('attack', [['bash', 'attack.sh']]) });
    await write(world, 'attack.sh', 'echo hacked > "$0" && echo wrote\n');
    expect(commandsOf(await world.turn('go'))[0]).toMatchObject({ stdout: 'wrote\n' });
  });
});
