import { expect, test } from 'vitest';
import { addUser, claimedRun, event, mustClaim, post, refOf, settle, T0 } from '../store/scene.ts';
import type { Current } from './store.ts';

/** What is read of many runs at once. */
export function runListClauses(current: Current): void {
  test('runs that are parked at a gate of one kind are found, oldest first, and no others', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const parked: string[] = [];
    for (const kind of ['credential', 'unknown', 'credential', 'approval'] as const) {
      await post(store);
      const run = await mustClaim(store);
      await store.runs.settle(refOf(run), {
        to: 'parked',
        gate: { kind, ref: 'github', reason: 'waits' },
        outcome: 'parked',
        event: event('run.parked', run.id),
        nowMs: T0,
      });
      parked.push(run.id);
    }
    await post(store);
    await mustClaim(store);
    expect((await store.runs.parkedAt('credential')).map(({ id }) => id)).toEqual([parked[0], parked[2]]);
    expect(await store.runs.parkedAt('resource')).toEqual([]);
    await store.runs.move(parked[0] ?? '', { from: ['parked'], to: 'queued', event: event('run.woken', parked[0]), nowMs: T0 });
    expect((await store.runs.parkedAt('credential')).map(({ id }) => id)).toEqual([parked[2]]);
  });

  test('runs are listed newest first, by tenant, thread and state', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const { run: other, thread } = await post(store);
    const ids = async (filter: Omit<Parameters<typeof store.runs.list>[0], 'limit'>, limit = 9) =>
      (await store.runs.list({ ...filter, limit })).map(({ id }) => id);
    expect(await ids({})).toEqual([other.id, run.id]);
    expect(await ids({}, 1)).toEqual([other.id]);
    expect(await ids({ thread: thread.id })).toEqual([other.id]);
    expect(await ids({ states: ['running', 'parked'] })).toEqual([run.id]);
    expect(await ids({ states: [] })).toEqual([]);
    expect(await ids({ tenant: 'other' })).toEqual([]);
  });

  test('lastSeats gives of each run the placement of its latest seated attempt, and leaves out what never had one', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { run, thread } = await post(store);
    const { run: waiting } = await post(store, { thread: thread.id });
    const seats = async () => Object.fromEntries(await store.runs.lastSeats([run.id, waiting.id, 'run_unknown']));
    expect(await seats()).toEqual({});
    for (const placement of ['disposable-per-run', 'persistent-per-user'] as const) {
      const ref = refOf(await mustClaim(store));
      await store.runs.seat(ref, { placement, engine: 'bubblewrap', event: event('run.placed', ref.run), nowMs: T0 });
      expect(await seats()).toEqual({ [run.id]: placement });
      await settle(store, ref, 'queued');
    }
    // An attempt that has no seat yet takes nothing away.
    await mustClaim(store);
    expect(await seats()).toEqual({ [run.id]: 'persistent-per-user' });
    expect(await store.runs.lastSeats([])).toEqual(new Map());
  });
}
