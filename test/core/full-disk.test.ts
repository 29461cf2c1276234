import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { closePermit } from '../../core/capability/close-call.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import { untilStored } from '../../core/run/until-stored.ts';
import { callWorld, commandOutcome, ManualClock, type WorldOptions } from '../support/call-world.ts';
import { fullDisk } from '../support/full-disk.ts';
import { claimNext, runWorld } from '../support/run-world.ts';

const shell = (step: number) => ({ key: { step, call: 2 }, capability: 'shell.exec', args: { argv: ['make'] } });
const FULL = { code: 'disk_full', retryable: true } as const;

/** Lets everything that waits for nothing but its turn come to it. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

async function world(options: WorldOptions = {}) {
  const made = await callWorld(options);
  const disk = fullDisk(made.store);
  return { ...made, disk, deps: { ...made.deps, store: disk.store } };
}

/** Lets time pass until the promise has ended, with room from `roomAt` on. */
async function waited<T>(made: { clock: ManualClock; disk: { full: boolean } }, work: Promise<T>, roomAt: number): Promise<T> {
  let over = false;
  const ended = work.finally(() => {
    over = true;
  });
  ended.catch(() => {});
  for (let seconds = 0; !over && seconds < 600; seconds += 1) {
    if (seconds === roomAt) made.disk.full = false;
    await settled();
    made.clock.advance(1000);
  }
  return ended;
}

describe('BL-108 a command that ended while the disk is full', () => {
  it('is recorded when there is room, as of the moment at which it ended, in the kernel', async () => {
    const made = await world({ tools: { exec: async () => commandOutcome({ stdout: fill(made) }) } });
    const endedAtMs = made.clock.now();
    const reply = await waited(made, call(made.deps, made.scope, shell(0)), 300);
    expect(reply).toMatchObject({ effect: 'done', result: { stdout: 'made' } });
    // Later than the deadline of its permit: the command was not.
    expect(made.clock.now() - endedAtMs).toBeGreaterThan(250_000);
    expect((await made.store.calls.list(made.scope.run))[0]).toMatchObject({ state: 'done', closedAtMs: endedAtMs });
  });

  it('is recorded when there is room, in a sandboxed placement, and its permit counts once', async () => {
    const made = await world({ placement: 'persistent-per-user' });
    const reply = await call(made.deps, made.scope, shell(0));
    const permit = reply.effect === 'permit' ? reply.permit.id : '';
    made.disk.full = true;
    const closing = closePermit(made.deps, made.scope, { permit, outcome: commandOutcome({ stdout: 'made' }) });
    await settled();
    await expect(closePermit(made.deps, made.scope, { permit, outcome: commandOutcome() })).rejects.toMatchObject({
      code: 'permit_unknown',
    });
    expect(await waited(made, closing, 3)).toMatchObject({ effect: 'done', result: { stdout: 'made' } });
    expect((await made.store.calls.list(made.scope.run))[0]).toMatchObject({ state: 'done', outcome: { source: 'claimed' } });
  });

  it('control: what nobody waits for any more is lost, and its row tells that its end is not known', async () => {
    const made = await world({ tools: { exec: async () => commandOutcome({ stdout: fill(made) }) } });
    const pending = call(made.deps, made.scope, shell(0));
    pending.catch(() => {});
    await settled();
    made.live.cancel();
    await expect(pending).rejects.toMatchObject(FULL);
    expect((await made.store.calls.list(made.scope.run))[0]).toMatchObject({ state: 'dispatched' });
  });

  const fill = (made: { disk: { full: boolean } }): string => {
    made.disk.full = true;
    return 'made';
  };
});

describe('BL-108 while the disk is full', () => {
  it.each(['shell.exec', 'model.generate', 'message.post', 'fs.read'])(
    '%s does not start, is told why, and holds nothing',
    async (capability) => {
      const args = {
        'shell.exec': { argv: ['ls'] },
        'model.generate': { messages: [{ role: 'user', content: 'x' }] },
        'message.post': { body: 'x' },
        'fs.read': { path: 'a' },
      }[capability];
      const asked: string[] = [];
      const model = { generate: async () => asked.push('model') as never };
      const made = await world({ model });
      made.disk.full = true;
      const request = { key: { step: 0, call: 2 }, capability, args: args as never };
      for (const _ of [1, 2, 3, 4, 5, 6]) await expect(call(made.deps, made.scope, request)).rejects.toMatchObject(FULL);
      expect([made.executed, asked]).toEqual([[], []]);
      made.disk.full = false;
      // Control: with room the same call starts.
      await call(made.deps, made.scope, request).catch(() => {});
      expect((await made.store.calls.list(made.scope.run)).length).toBe(1);
    },
  );

  it('a run whose loop gives up for it is not failed: it goes on when there is room', async () => {
    const claim: ExitClaim = { kind: 'failed', code: 'disk_full', message: 'no room' };
    let attempts = 0;
    const made = await runWorld(async (task, self) => {
      attempts += 1;
      disk.full = attempts === 1;
      const reply = self.call(task, { key: { step: 0, call: 2 }, capability: 'message.post', args: { body: 'done' } });
      return reply.then(
        () => ({ kind: 'exited', claim: { kind: 'completed' } }) as const,
        () => ({ kind: 'exited', claim }) as const,
      );
    });
    const disk = fullDisk(made.world.store);
    Object.assign(made.deps, { store: disk.store });
    const first = await waited({ clock: made.world.clock, disk }, made.execute(await made.claim()), 60);
    expect(first).toMatchObject({ state: 'queued', reclaims: 1 });
    expect(await made.execute(await claimNext(made.world))).toMatchObject({ state: 'completed', fence: 2 });
  });

  it('control: a loop that claims it of a store that refused nothing has failed', async () => {
    const made = await runWorld(async () => ({ kind: 'exited', claim: { kind: 'failed', code: 'disk_full', message: 'no room' } }));
    expect(await made.execute(await made.claim())).toMatchObject({ state: 'failed', failure: 'executor_disk_full' });
  });

  it('an attempt that could not even be seated is tried again', async () => {
    const made = await runWorld(async () => ({ kind: 'exited', claim: { kind: 'completed' } }));
    const disk = fullDisk(made.world.store);
    Object.assign(made.deps, { store: disk.store });
    const run = await made.claim();
    disk.full = true;
    expect(await waited({ clock: made.world.clock, disk }, made.execute(run), 5)).toMatchObject({ state: 'queued', reclaims: 1 });
  });
});

describe('what waits for the store', () => {
  it('tries after 0.1 s, 0.2 s and so on, every 2 s at most, and no faster', async () => {
    const clock = new ManualClock();
    const disk = fullDisk((await callWorld()).store);
    const startMs = clock.now();
    const triedMs: number[] = [];
    disk.full = true;
    const write = untilStored(clock, new AbortController().signal, () => {
      triedMs.push(clock.now() - startMs);
      if (triedMs.length === 8) disk.full = false;
      return disk.store.probe();
    });
    for (let at = 0; at < 100; at += 1) {
      await settled();
      clock.advance(100);
    }
    await write;
    expect(triedMs).toEqual([0, 100, 300, 700, 1500, 3100, 5100, 7100]);
  });

  it('does not wait when the store says no for any other reason', async () => {
    const clock = new ManualClock();
    const { store } = await callWorld();
    const refused = untilStored(clock, new AbortController().signal, () => store.runs.heartbeat({ run: 'none', fence: 1 }, 0, 1));
    await expect(refused).rejects.toMatchObject({ code: 'lease_lost' });
  });
});
