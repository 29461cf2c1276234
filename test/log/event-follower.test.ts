import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { EventFollower } from '../../adapters/event-follower.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import type { KernelEvent } from '../../core/events.ts';
import type { EventStore } from '../../core/ports/store.ts';
import { ManualClock } from '../support/call-world.ts';

const fail = (error: unknown): never => {
  throw error;
};

it('hands on every event after its start, once and in order, and the last ones when it closes', async () => {
  const { events } = createMemoryStore();
  await events.append({ type: 'policy.loaded', data: {} }, 1);
  const seen: number[] = [];
  const follower = new EventFollower({ events, clock: new ManualClock(), onEvent: ({ cursor }) => seen.push(cursor), onError: fail });
  await follower.start();
  for (let i = 0; i < 450; i += 1) await events.append({ type: 'run.progress', data: { i } }, 1);
  await follower.close();
  expect(seen).toEqual(Array.from({ length: 450 }, (_, i) => i + 2));
});

it('says so when the log cannot be read or an event not be taken, and goes on: nothing is left out that can be handed on', async () => {
  const { events } = createMemoryStore();
  const clock = new ManualClock();
  const errors: unknown[] = [];
  const failed = Promise.withResolvers<void>();
  const again = Promise.withResolvers<void>();
  let reads = 0;
  const flaky: EventStore = {
    ...events,
    async read(...given) {
      reads += 1;
      if (reads === 1) throw new Error('not now');
      return events.read(...given);
    },
  };
  const seen: number[] = [];
  const onEvent = ({ cursor }: KernelEvent) => {
    if (cursor === 1) throw new Error('not taken');
    seen.push(cursor);
    again.resolve();
  };
  const onError = (error: unknown) => {
    errors.push(error);
    failed.resolve();
  };
  const follower = new EventFollower({ events: flaky, clock, onEvent, onError });
  await follower.start();
  await events.append({ type: 'policy.loaded', data: {} }, 1);
  await events.append({ type: 'policy.loaded', data: {} }, 1);
  await failed.promise;
  for (let i = 0; seen.length === 0 && i < 1000; i += 1) {
    clock.advance(5000);
    await setImmediate();
  }
  await again.promise;
  await follower.close();
  expect(seen).toEqual([2]);
  expect(errors.map(String)).toEqual(['Error: not now', 'Error: not taken']);
});
