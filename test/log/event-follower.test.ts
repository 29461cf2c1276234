import { expect, it } from 'vitest';
import { EventFollower } from '../../adapters/event-follower.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';

const fail = (error: unknown): never => {
  throw error;
};

it('hands on every event after its start, once and in order, and the last ones when it closes', async () => {
  const { events } = createMemoryStore();
  await events.append({ type: 'policy.loaded', data: {} }, 1);
  const seen: number[] = [];
  const follower = new EventFollower({ events, onEvent: ({ cursor }) => seen.push(cursor), onError: fail });
  await follower.start();
  for (let i = 0; i < 450; i += 1) await events.append({ type: 'run.progress', data: { i } }, 1);
  await follower.close();
  expect(seen).toEqual(Array.from({ length: 450 }, (_, i) => i + 2));
});

it('ends and says so when the log cannot be read', async () => {
  const { events } = createMemoryStore();
  const errors: unknown[] = [];
  const broken = { ...events, read: () => Promise.reject(new Error('gone')) };
  const follower = new EventFollower({ events: broken, onEvent: () => {}, onError: (error) => errors.push(error) });
  await follower.start();
  await follower.close();
  expect(errors).toEqual([expect.objectContaining({ message: 'gone' })]);
});
