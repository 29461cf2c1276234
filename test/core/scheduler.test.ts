import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { CallRequest } from '../../core/capability/types.ts';
import { StoreError } from '../../core/errors.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { Store } from '../../core/ports/store.ts';
import { Scheduler } from '../../core/run/scheduler.ts';
import type { Run } from '../../core/run/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { type RunWorld, runWorld } from '../support/run-world.ts';

const reply: CallRequest = { key: { step: 0, call: 2 }, capability: 'message.post', args: { body: 'done' } };
const completed = { kind: 'exited', claim: { kind: 'completed' } } as const;

async function eventually<Found>(look: () => Promise<Found | undefined> | Found | undefined): Promise<Found> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await setImmediate();
  }
}

function schedulerOf({ deps }: RunWorld, errors: unknown[] = []): Scheduler {
  return new Scheduler({ ...deps, holder: 'here', alone: true, onError: (error) => errors.push(error), onEnded: () => {} });
}

const post = async ({ world: { store, clock } }: RunWorld, actor = 'ada'): Promise<string> =>
  (await store.threads.post({ tenant: 'default', actor, origin: 'operator', body: 'go', nowMs: clock.now() })).run.id;

const ended = ({ world: { store } }: RunWorld, run: string): Promise<Run> =>
  eventually(async () => {
    const now = await store.runs.get(run);
    return now?.endedAtMs === undefined ? undefined : now;
  });

it('S4 a kernel that was stopped for longer than a lease goes on with the attempts it holds', async () => {
  const working = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const made = await runWorld(async (task, self) => {
    working.resolve();
    await stopped.promise;
    await self.call(task, reply);
    return completed;
  });
  let sweeps = 0;
  const { store } = made.deps;
  const expire: Store['runs']['expire'] = async (...given) => {
    const moved = await store.runs.expire(...given);
    sweeps += 1;
    return moved;
  };
  let stoppedMs = 0;
  const base = made.world.clock;
  const clock: Clock = { now: () => base.now() + stoppedMs, after: (ms, fn) => base.after(ms, fn) };
  const deps = { ...made.deps, clock, store: { ...store, runs: { ...store.runs, expire } } };
  await using scheduler = schedulerOf({ ...made, deps });
  const run = await post(made);
  scheduler.start();
  await working.promise;
  const before = sweeps;
  // Every timer is due at once, and that of the sweep comes first.
  stoppedMs = 3 * CAPACITY.leaseMs;
  base.advance(1000);
  await eventually(() => (sweeps > before ? true : undefined));
  stopped.resolve();
  expect(await ended(made, run)).toMatchObject({ state: 'completed', fence: 1, reclaims: 0 });
});

it('S4 an attempt that has lost its lease ends here before the next one of its run begins', async () => {
  const release = Promise.withResolvers<void>();
  const told: string[] = [];
  const made = await runWorld(async (task, self) => {
    told.push(`begin ${task.scope.fence}`);
    if (task.scope.fence === 1) {
      await release.promise;
      told.push('end 1');
      return { kind: 'lost', reason: 'stopped' };
    }
    await self.call(task, reply);
    return completed;
  });
  const { store, clock } = made.world;
  await using scheduler = schedulerOf(made);
  const run = await post(made);
  scheduler.start();
  await eventually(() => told[0]);
  await store.runs.expire(clock.now(), 3, 'another kernel');
  scheduler.wake();
  await eventually(async () => ((await store.runs.get(run))?.fence === 2 ? true : undefined));
  release.resolve();
  expect(await ended(made, run)).toMatchObject({ state: 'completed', fence: 2 });
  expect(told).toEqual(['begin 1', 'end 1', 'begin 2']);
});

it('a heartbeat that finds the lease lost stops the attempt; one that a full disk refused does not', async () => {
  const signals: AbortSignal[] = [];
  const release = Promise.withResolvers<void>();
  const made = await runWorld(async (task) => {
    signals.push(task.signal);
    await release.promise;
    return { kind: 'lost', reason: 'stopped' };
  });
  const errors: unknown[] = [];
  const beats: StoreError[] = [new StoreError('disk_full', 'full', { retryable: true }), new StoreError('lease_lost', 'lost')];
  const { runs } = made.deps.store;
  const heartbeat = async (): Promise<never> => {
    throw beats.shift() ?? new StoreError('lease_lost', 'lost');
  };
  const store = { ...made.deps.store, runs: { ...runs, heartbeat } };
  await using scheduler = schedulerOf({ ...made, deps: { ...made.deps, store } }, errors);
  await post(made);
  scheduler.start();
  const signal = await eventually(() => signals[0]);
  made.world.clock.advance(CAPACITY.heartbeatMs);
  await eventually(() => errors[0]);
  expect(signal.aborted).toBe(false);
  made.world.clock.advance(CAPACITY.heartbeatMs);
  await eventually(() => (signal.aborted ? true : undefined));
  release.resolve();
});

it('a broker that never answers delays no claim and no end, only the gate that waits for it', async () => {
  const made = await runWorld(async (task, self) => {
    await self.call(task, reply);
    return completed;
  });
  const { store, clock, scope } = made.world;
  const waiting = await made.claim();
  const event = { type: 'run.parked', tenant: scope.tenant, thread: waiting.thread, run: waiting.id, data: {} } as const;
  const gate = { kind: 'credential', ref: 'github', reason: 'missing' } as const;
  await store.runs.settle({ run: waiting.id, fence: waiting.fence }, { to: 'parked', gate, event, outcome: 'parked', nowMs: clock.now() });
  const asked: string[] = [];
  const broker = {
    ...made.deps.broker,
    isMissing: (_: unknown, recipe: string) => {
      asked.push(recipe);
      return new Promise<boolean>(() => {});
    },
  };
  await using scheduler = schedulerOf({ ...made, deps: { ...made.deps, broker } });
  scheduler.start();
  await eventually(() => asked[0]);
  const run = await post(made);
  scheduler.wake();
  expect((await ended(made, run)).state).toBe('completed');
  expect((await store.runs.get(waiting.id))?.state).toBe('parked');
});
