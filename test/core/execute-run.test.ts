import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { CallRequest } from '../../core/capability/types.ts';
import { ConfigError, PrerequisiteError, SandboxError } from '../../core/errors.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import { decision } from '../support/call-world.ts';
import { claimNext, runWorld } from '../support/run-world.ts';

const reply: CallRequest = { key: { step: 0, call: 2 }, capability: 'message.post', args: { body: 'done' } };
const command = (argv: readonly string[]): CallRequest => ({ key: { step: 0, call: 2 }, capability: 'shell.exec', args: { argv } });
const exited = (claim: ExitClaim) => ({ kind: 'exited', claim }) as const;

const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await setImmediate();
};

describe('one attempt of a run', () => {
  it('completes when the executor posted a reply and says so', async () => {
    const made = await runWorld(async (task, self) => {
      await self.call(task, reply);
      return exited({ kind: 'completed' });
    });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'completed', failure: undefined });
    expect(made.log).toEqual(['seat host-loop-shell for ada', 'revoke below 2', 'release healthy']);
  });

  it.each([
    ['completed without a reply', { kind: 'completed' }],
    ['parked without a gate', { kind: 'parked' }],
    ['cancelled without a cancellation', { kind: 'cancelled' }],
  ] as const)('does not believe an executor that claims to be %s', async (_, claim) => {
    const made = await runWorld(async () => exited(claim));
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'failed', failure: 'exit_contradicts_evidence' });
  });

  it('does not complete over a command whose end is open', async () => {
    const made = await runWorld(
      async (task, self) => {
        await self.call(task, { ...reply, key: { step: 0, call: 3 } });
        await self.call(task, command(['make']));
        return exited({ kind: 'completed' });
      },
      { placement: 'persistent-per-user', config: { placement: 'persistent-per-user' } },
    );
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'queued', reclaims: 1 });
    const again = await claimNext(made.world);
    expect(await made.execute(again)).toMatchObject({ state: 'parked', gate: { kind: 'unknown' } });
  });

  it('a lost executor goes back to the queue, and the next attempt ends what it left before the ledger is judged', async () => {
    let attempts = 0;
    const made = await runWorld(async (task, self) => {
      attempts += 1;
      if (attempts === 1) return { kind: 'lost', reason: 'killed' };
      await self.call(task, reply);
      return exited({ kind: 'completed' });
    });
    const run = await made.claim();
    expect(await made.execute(run)).toMatchObject({ state: 'queued', reclaims: 1 });
    expect(made.log.at(-1)).toBe('release broken');
    made.log.length = 0;
    expect(await made.execute(await claimNext(made.world))).toMatchObject({ state: 'completed', fence: 2 });
    expect(made.log.slice(0, 4)).toEqual(['revoke below 2', 'cut egress', 'recycle host-loop-shell', 'seat host-loop-shell for ada']);
  });

  it('a run whose executors keep dying fails when its budget is used up', async () => {
    const made = await runWorld(async () => ({ kind: 'lost', reason: 'killed' }));
    let run = await made.execute(await made.claim());
    for (let i = 0; i < 3; i += 1) run = await made.execute(await claimNext(made.world));
    expect(run).toMatchObject({ state: 'failed', failure: 'reclaim_budget_exhausted' });
  });

  it('a closing kernel costs the run nothing', async () => {
    const closing = AbortSignal.abort();
    const made = await runWorld(async () => ({ kind: 'lost', reason: 'stopped' }));
    expect(await made.execute(await made.claim(), { closing })).toMatchObject({ state: 'queued', reclaims: 0 });
  });

  it('a sandbox that does not start is lost, not failed', async () => {
    const made = await runWorld(async () => exited({ kind: 'completed' }), { seatFails: new SandboxError('start_failed', 'no') });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'queued', reclaims: 1 });
  });

  it.each([
    new PrerequisiteError('component_missing', 'no sandbox can be made: bwrap is not installed', { hint: 'apt-get install bubblewrap' }),
    new PrerequisiteError('image_unusable', 'no image can be built', { hint: 'mend it' }),
    new ConfigError('limits_unenforceable', 'no limits', { hint: 'delegate a group' }),
    new SandboxError('slice_exhausted', 'no ids are left', { hint: 'a larger range' }),
  ])('what another attempt cannot mend fails the run at once, with its code and hint: $code', async (error) => {
    const made = await runWorld(async () => exited({ kind: 'completed' }), { seatFails: error });
    const { code, message, hint } = error;
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'failed', failure: code, reclaims: 0 });
    expect((await made.world.store.events.last())?.data).toMatchObject({ code, reasons: [{ code, message, hint }] });
  });

  it('a start that keeps failing is tried until the budget is used up, and the last cause is in the failure', async () => {
    const made = await runWorld(async () => exited({ kind: 'completed' }), { seatFails: new SandboxError('start_failed', 'no such luck') });
    let run = await made.execute(await made.claim());
    for (let i = 0; i < 3; i += 1) {
      expect(run).toMatchObject({ state: 'queued', reclaims: i + 1 });
      run = await made.execute(await claimNext(made.world));
    }
    expect(run).toMatchObject({ state: 'failed', failure: 'reclaim_budget_exhausted' });
    expect((await made.world.store.events.last())?.data).toMatchObject({ reasons: [{ code: 'start_failed', message: 'no such luck' }] });
  });

  it('BL-108 a start that finds no room on the disk is tried again after 1 s, 5 s and 25 s, and then told', async () => {
    const seatFails = new SandboxError('disk_full', 'no room', { hint: 'free some' });
    const made = await runWorld(async () => expect.fail('nobody has a seat'), { seatFails });
    const { clock } = made.world;
    let run = await made.claim();
    for (const waitMs of [1000, 5000, 25_000]) {
      let ended = false;
      const executing = made.execute(run).finally(() => {
        ended = true;
      });
      await turns();
      clock.advance(waitMs - 1);
      await turns();
      expect(ended).toBe(false);
      clock.advance(1);
      expect(await executing).toMatchObject({ state: 'queued' });
      run = await claimNext(made.world);
    }
    expect(await made.execute(run)).toMatchObject({ state: 'failed', failure: 'reclaim_budget_exhausted' });
    const last = (await made.world.store.events.read(0, { run: run.id }, 100)).at(-1);
    expect(last?.data).toMatchObject({ reasons: [{ code: 'disk_full', message: 'no room', hint: 'free some' }] });
  });

  it('a kernel that closes does not wait for room', async () => {
    const made = await runWorld(async () => expect.fail('nobody has a seat'), { seatFails: new SandboxError('disk_full', 'no room') });
    const closing = AbortSignal.abort();
    expect(await made.execute(await made.claim(), { signal: closing, closing })).toMatchObject({ state: 'queued', reclaims: 0 });
  });

  it.each([true, false])('a run that reaches its deadline says whether a command was open whose end nobody knows (%s)', async (open) => {
    const made = await runWorld(
      async (task, self) => {
        if (open) await self.call(task, command(['make']));
        self.world.clock.advance(3_600_000);
        return { kind: 'lost', reason: 'stopped' };
      },
      { placement: 'persistent-per-user', config: { placement: 'persistent-per-user' } },
    );
    const run = await made.execute(await made.claim());
    expect(run).toMatchObject({ state: 'failed', failure: 'deadline_exceeded' });
    const { data } = (await made.world.store.events.read(0, { run: run.id }, 100)).find(({ type }) => type === 'run.failed') ?? {};
    expect(data).toMatchObject({ reasons: open ? [{ code: 'call_unknown', message: expect.stringContaining('make') }] : [] });
  });

  it('policy decides the placement; a refused one seats nobody', async () => {
    const made = await runWorld(async () => exited({ kind: 'completed' }), {
      decide: (input) =>
        input.kind === 'placement'
          ? decision({ effect: 'deny', reasons: [{ code: 'placement_not_reviewed', message: 'no' }] })
          : decision(),
    });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'failed', failure: 'placement_not_reviewed' });
    expect(made.log).toEqual([]);
  });

  it('an exception by user goes before tenant, and tenant before global', async () => {
    const tenants = { default: { placement: 'disposable-per-run', users: { ada: { placement: 'persistent-per-user' } } } } as const;
    const made = await runWorld(async () => exited({ kind: 'failed', code: 'x', message: '' }), { config: { tenants } });
    await made.execute(await made.claim());
    expect(made.log[0]).toBe('seat persistent-per-user for ada');
    expect(await made.world.store.runs.list({ states: ['failed'], limit: 1 })).toMatchObject([{ failure: 'executor_x' }]);
  });

  it('cancellation ends the run as cancelled, whatever the executor says', async () => {
    const made = await runWorld(async (task, self) => {
      await self.world.store.runs.requestCancel(task.scope.run, { type: 'run.cancelling', data: {} }, self.world.clock.now());
      const live = self.deps.live.find(task.scope.run);
      if (live !== undefined) live.cancelRequested = true;
      return exited({ kind: 'completed' });
    });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'cancelled' });
  });

  it('a cancellation that only the store knows of still keeps the run out of the queue', async () => {
    const made = await runWorld(async (task, self) => {
      await self.world.store.runs.requestCancel(task.scope.run, { type: 'run.cancelling', data: {} }, self.world.clock.now());
      return { kind: 'lost', reason: 'killed' };
    });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'cancelled' });
  });

  it('an attempt that lost its lease changes nothing', async () => {
    const made = await runWorld(async (_, self) => {
      self.world.clock.advance(60_000);
      await self.world.store.runs.expire(self.world.clock.now(), 3);
      await claimNext(self.world);
      return exited({ kind: 'failed', code: 'late', message: '' });
    });
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'running', fence: 2 });
  });
});
