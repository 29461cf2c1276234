import { expect, test } from 'vitest';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import { steadyClock, systemClock } from '../../core/seams/clock.ts';
import { claimedRun, LEASE_MS, refOf } from './scene.ts';

/** A wall clock that can be set, beside a monotonic one that cannot. */
function machine() {
  let wall = 5_000_000;
  let uptime = 77.5;
  return {
    pass(ms: number) {
      wall += ms;
      uptime += ms;
    },
    set(ms: number) {
      wall += ms;
    },
    wall: () => wall,
    clock: steadyClock(
      () => wall,
      () => uptime,
    ),
  };
}

test.each([180_000, -600_000])('BL-112 a wall clock that is set by %i ms ends no living lease and keeps no dead one', async (step) => {
  const { pass, set, wall, clock } = machine();
  const store = createMemoryStore();
  const run = await claimedRun(store);
  await store.runs.heartbeat(refOf(run), clock.now(), LEASE_MS);
  pass(LEASE_MS - 1);
  set(step);
  // Control: by the wall clock alone a step forward would end the lease.
  if (step > 0) expect(wall()).toBeGreaterThan(clock.now() + LEASE_MS);
  expect(await store.runs.expire(clock.now(), 3)).toEqual([]);
  pass(1);
  expect(await store.runs.expire(clock.now(), 3)).toMatchObject([{ id: run.id, state: 'queued' }]);
});

test('the steady clock starts at the time of the machine', () => {
  expect(Math.abs(steadyClock().now() - systemClock.now())).toBeLessThan(1000);
});
