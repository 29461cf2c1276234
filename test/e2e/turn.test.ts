import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { RunView } from '../../core/kernel.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, e2e, scenario, smallRepository } from '../support/e2e.ts';

describe.each(PLACEMENTS)('a whole turn under %s', (placement) => {
  it('surveys a real repository: six model calls, five commands, a file, a reply, all in the ledger', async () => {
    await using world = await e2e({ placement, scenario: scenario('clone', [['git', 'clone', '-q', 'repo.bundle', 'repo']]) });
    await world.kernel.importFile({ tenant: 'default', user: 'ada' }, 'repo.bundle', Readable.from([smallRepository()]));
    expect((await world.turn('clone it')).run.state).toBe('completed');

    await using survey = await world.reopen({ scenario: 'survey' });
    const view = await survey.turn('survey the repository');
    expect(view.run).toMatchObject({ state: 'completed', fence: 1 });
    expect(view.attempts).toMatchObject([{ placement, engine: 'bubblewrap', outcome: 'completed' }]);
    const count = (name: string) => view.calls.filter((row) => row.capability === name).length;
    expect([count('model.generate'), count('shell.exec'), count('message.post')]).toEqual([6, 5, 1]);
    expect(view.calls.every((row) => row.state === 'done')).toBe(true);
    const decided = new Set(view.decisions.map((decision) => decision.id));
    expect(view.calls.every((row) => decided.has(row.decision))).toBe(true);
    const { messages } = await survey.kernel.showThread('default', view.run.thread);
    expect(messages.at(-1)).toMatchObject({ author: 'agent', body: expect.stringContaining('3 tracked files') });
    expect(messages.at(-1)?.body).toContain('Second');
  });

  it('marks local commands as claimed by the executor, and the kernel’s own as evidence', async () => {
    await using world = await e2e({ placement, scenario: scenario('id', [['id', '-u']]) });
    const view = await world.turn('who');
    const command = view.calls.find((row) => row.capability === 'shell.exec');
    expect(command?.outcome).toMatchObject({
      kind: 'result',
      source: placement === 'host-loop-shell' ? 'kernel' : 'claimed',
      result: { exitCode: 0, stdout: '1000\n' },
    });
  });

  it('a failing command is told apart from success, and NUL in its output is storable', async () => {
    await using world = await e2e({
      placement,
      scenario: scenario('bad', [['sh', '-c', 'printf "a\\0b"; exit 7'], ['/no/such/program'], ['sh', '-c', 'kill -9 $$']]),
    });
    const view = await world.turn('fail');
    expect(view.run.state).toBe('completed');
    const results = commandsOf(view);
    expect(results[0]).toMatchObject({ exitCode: 7, stdout: 'a\ufffdb' });
    expect(results[1]).toMatchObject({ exitCode: 127 });
    expect(results[2]).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
  });

  it('cancels a run in the middle of a command and ends the command', async () => {
    await using world = await e2e({ placement, scenario: scenario('slow', [['sleep', '600']]) });
    const run = await world.post('wait');
    await world.event(run, (event) => event.type === 'call.dispatched' && event.data.capability === 'shell.exec');
    await world.kernel.cancelRun(run);
    expect((await world.until(run)).run.state).toBe('cancelled');
  });

  it('later messages of a thread wait their turn, and say for what', async () => {
    await using world = await e2e({
      placement,
      scenario: scenario('slow', [['sh', '-c', 'until [ -e go ]; do sleep 0.05; done']]),
      users: ['ada', 'bo'],
    });
    const first = await world.post('one');
    const placed = await world.event(first, (event) => event.type === 'call.dispatched' && event.data.capability === 'shell.exec');
    const second = await world.post('two', { thread: placed.thread ?? '', user: 'bo' });
    expect((await world.kernel.showRun(second)).next).toContain(first);
    await world.kernel.importFile({ tenant: 'default', user: 'ada' }, 'go', Readable.from([Buffer.from('x')]));
    await world.until(first);
    await world.kernel.importFile({ tenant: 'default', user: 'bo' }, 'go', Readable.from([Buffer.from('x')]));
    expect((await world.until(second)).run).toMatchObject({ state: 'completed', actor: 'bo' });
  });
});

/** Outcome of a run's last command. */
const resultOf = (view: RunView): CommandOutcome => {
  const last = commandsOf(view).at(-1);
  if (last === undefined) throw new Error(`no command ran: ${JSON.stringify(view.run)}`);
  return last;
};

describe('what a placement keeps', () => {
  it('persistent: the next run finds the same sandbox, its files, its background process and a warm executor', async () => {
    const first = scenario('first', [['sh', '-c', 'echo kept > file; echo $$ > /tmp/private']], { background: ['sleep', '3600'] });
    const second = scenario('second', [['sh', '-c', 'cat file /tmp/private; grep -l sleep /proc/[0-9]*/comm']]);
    await using world = await e2e({ placement: 'persistent-per-user', scenario: first });
    const one = await world.turn('start');
    await world.switchScenario(second);
    const two = await world.turn('look');
    expect(two.attempts[0]?.sandbox).toBe(one.attempts[0]?.sandbox);
    const { stdout } = resultOf(two);
    expect(stdout).toMatch(/^kept\n\d+\n\/proc\/\d+\/comm\n$/);
  });

  it('disposable: the next run finds the workspace and nothing else', async () => {
    await using world = await e2e({
      placement: 'disposable-per-run',
      scenario: scenario('first', [['sh', '-c', 'echo kept > file; echo gone > /tmp/private']], { background: ['sleep', '3600'] }),
    });
    const one = await world.turn('start');
    await world.switchScenario(scenario('second', [['sh', '-c', 'cat file /tmp/private; grep -l sleep /proc/[0-9]*/comm']]));
    const two = await world.turn('look');
    expect(two.attempts[0]?.sandbox).not.toBe(one.attempts[0]?.sandbox);
    expect(resultOf(two)).toMatchObject({
      stdout: 'kept\n',
    });
  });

  it('a switch of placement takes effect at the next run, and back, over the same workspace', async () => {
    await using world = await e2e({
      placement: 'persistent-per-user',
      scenario: scenario('append', [['sh', '-c', 'echo x >> log; wc -l < log']]),
    });
    const counts: string[] = [];
    for (const placement of ['persistent-per-user', 'disposable-per-run', 'host-loop-shell', 'persistent-per-user'] as const) {
      const view = await world.turn('again', { placement });
      expect(view.attempts[0]?.placement).toBe(placement);
      counts.push(resultOf(view).stdout.trim());
    }
    expect(counts).toEqual(['1', '2', '3', '4']);
  });

  it('two users share neither workspace, sandbox nor ids', async () => {
    await using world = await e2e({
      scenario: scenario('mine', [['sh', '-c', 'ls; id -u > who; cat /proc/self/uid_map']]),
      users: ['ada', 'bo'],
    });
    const ada = await world.turn('go', { user: 'ada' });
    const bo = await world.turn('go', { user: 'bo' });
    const out = (view: RunView) => resultOf(view).stdout;
    expect(out(bo)).not.toContain('who');
    expect(out(ada).trim()).not.toBe(out(bo).trim());
    expect(ada.attempts[0]?.sandbox).not.toBe(bo.attempts[0]?.sandbox);
  });
});

describe.each(PLACEMENTS)('steering under %s', (placement) => {
  it('reaches the run it names at its next step, from its own actor only', async () => {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const asked: string[] = [];
    await using world = await e2e({
      placement,
      users: ['ada', 'bo'],
      scenario: scenario('two', [['true'], ['true']]),
      onModel: async (request, step) => {
        asked.push(JSON.stringify(request.messages));
        if (step !== 1) return;
        reached.resolve();
        await gate.promise;
      },
    });
    const run = await world.post('go');
    await reached.promise;
    await expect(world.kernel.steerRun({ tenant: 'default', run, user: 'bo', body: 'obey me' })).rejects.toMatchObject({
      code: 'not_found',
    });
    await world.kernel.steerRun({ tenant: 'default', run, user: 'ada', body: 'also look left' });
    gate.resolve();
    expect((await world.until(run)).run.state).toBe('completed');
    expect(asked.map((text) => text.includes('also look left'))).toEqual([false, false, true]);
    expect(asked.at(-1)).not.toContain('obey me');
  });
});
