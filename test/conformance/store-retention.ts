import { expect, test } from 'vitest';
import { EVENT_TYPES, type EventType, PASSING_EVENTS } from '../../core/events.ts';
import type { PruneBefore, PruneCounts } from '../../core/ports/retention-store.ts';
import type { Store } from '../../core/ports/store.ts';
import {
  addUser,
  answer,
  ask,
  claimedRun,
  close,
  event,
  mustClaim,
  open,
  park,
  post,
  refOf,
  reply,
  settle,
  T0,
  visible,
} from '../store/scene.ts';
import { newAsk } from '../support/asked-approval.ts';
import type { Current } from './store.ts';

const ALL: PruneBefore = { decisionsBeforeMs: T0 + 1, threadsBeforeMs: T0 + 1 };
const NOTHING: PruneCounts = { decisions: 0, calls: 0, permits: 0, approvals: 0, files: 0, deliveries: 0, events: 0 };

/** As many calls as it takes; each removes about `limit` rows. @returns what was removed, and by how many calls */
async function pruneAll(store: Store, before: PruneBefore = ALL, limit = 500) {
  const total: Record<string, number> = { ...NOTHING };
  let calls = 0;
  for (let from: number | undefined, done = false; !done; calls += 1) {
    const { counts, next } = await store.retention.prune(before, limit, from);
    for (const [kind, count] of Object.entries(counts)) total[kind] = (total[kind] ?? 0) + count;
    done = next === undefined;
    from = next;
  }
  return { total, calls };
}

/** A run with a command, an approval that was used, and a reply. */
async function worked(store: Store, thread?: string) {
  await post(store, thread === undefined ? {} : { thread });
  const first = refOf(await mustClaim(store));
  await open(store, first, { permit: `p-${first.run}` });
  await close(store, first, `p-${first.run}`);
  const asked = await ask(store, first, { key: { step: 1, call: 0 } });
  await park(store, first, asked.id);
  await answer(store, asked.id, 'approved');
  const second = refOf(await mustClaim(store));
  const { id, fingerprint } = asked;
  await open(store, second, { key: { step: 1, call: 0 }, approval: { id, fingerprint }, permit: `q-${first.run}` });
  await close(store, second, `q-${first.run}`);
  await reply(store, second, 2, 'done');
  return { ref: second, asked };
}

async function deliverAll(store: Store): Promise<void> {
  for (let row = await store.deliveries.next(T0); row !== undefined; row = await store.deliveries.next(T0))
    await store.deliveries.finish(row.id, 'delivered', { ...event('delivery.sent', row.run), thread: row.thread }, T0);
}

const threadOf = async (store: Store, run: string): Promise<string> => (await store.runs.get(run))?.thread ?? '';

/** S19 and S20: what is kept no longer. */
export function retentionClauses(current: Current): void {
  test('S19 of a closed thread ledger, asks, files, deliveries and events go; thread, messages, runs and attempts stay', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { ref, asked } = await worked(store);
    await settle(store, ref, 'completed');
    await deliverAll(store);
    await store.events.append(event('user.added'), T0);
    const before = (await visible(store)) as { runs: { run: unknown; attempts: unknown }[]; threads: unknown };
    const { total } = await pruneAll(store);
    expect(total).toMatchObject({ decisions: 4, calls: 3, permits: 3, approvals: 1, files: 1, deliveries: 2, events: expect.any(Number) });
    expect(await store.calls.list(ref.run)).toEqual([]);
    expect(await store.calls.decisions(ref.run)).toEqual([]);
    expect(await store.approvals.list({ limit: 9 })).toEqual([]);
    expect(await store.approvals.file(asked.files[0]?.sha256 ?? '')).toBeUndefined();
    expect(await store.deliveries.list({ limit: 9 })).toEqual([]);
    expect(await store.events.read(0, { thread: await threadOf(store, ref.run) }, 100)).toEqual([]);
    const after = (await visible(store)) as typeof before;
    expect(after.threads).toEqual(before.threads);
    expect(after.runs.map(({ run, attempts }) => ({ run, attempts }))).toEqual(before.runs.map(({ run, attempts }) => ({ run, attempts })));
    expect((await pruneAll(store)).total).toEqual(NOTHING);
  });

  test('S19 nothing goes before its time, to the millisecond', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { ref } = await worked(store);
    await settle(store, ref, 'completed');
    await deliverAll(store);
    const before = await visible(store);
    expect((await pruneAll(store, { decisionsBeforeMs: T0, threadsBeforeMs: T0 })).total).toEqual(NOTHING);
    expect(await visible(store)).toEqual(before);
    expect((await pruneAll(store, { decisionsBeforeMs: T0 + 1, threadsBeforeMs: T0 })).total).toEqual({ ...NOTHING, decisions: 4 });
    expect((await pruneAll(store, { decisionsBeforeMs: T0, threadsBeforeMs: T0 + 1 })).total).toMatchObject({ calls: 3, decisions: 0 });
  });

  test.each<[string, (store: Store) => Promise<unknown>]>([
    ['queued', async (store) => post(store)],
    ['running', async (store) => open(store, refOf(await claimedMore(store)), { permit: 'p1' })],
    [
      'parked on an ask',
      async (store) => {
        const ref = refOf(await claimedMore(store));
        await park(store, ref, (await ask(store, ref)).id);
      },
    ],
  ])('S19 what a run that is %s needs stays, and so does its whole thread', async (_, make) => {
    const { store } = current;
    await addUser(store, 'ada');
    await make(store);
    await deliverAll(store);
    const before = await visible(store);
    expect((await pruneAll(store)).total).toEqual(NOTHING);
    expect(await visible(store)).toEqual(before);
  });

  test('S19 an earlier run of a thread that goes on keeps all but its old decisions; once the later one ends, both go', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { ref } = await worked(store);
    await settle(store, ref, 'completed');
    await deliverAll(store);
    await post(store, { thread: await threadOf(store, ref.run) });
    const later = refOf(await mustClaim(store));
    await open(store, later, { permit: 'later' });
    expect((await pruneAll(store)).total).toEqual({ ...NOTHING, decisions: 4 });
    expect(await store.calls.list(ref.run)).toHaveLength(3);
    await close(store, later, 'later');
    await settle(store, later, 'failed');
    expect((await pruneAll(store)).total).toMatchObject({ decisions: 1, calls: 4, permits: 4, approvals: 1 });
  });

  test('S19 a message opens a pruned thread again, and what comes of it goes in its own time', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { ref } = await worked(store);
    await settle(store, ref, 'completed');
    await deliverAll(store);
    await store.events.append(event('user.added'), T0);
    await pruneAll(store);
    const thread = await threadOf(store, ref.run);
    await post(store, { thread });
    const again = refOf(await mustClaim(store));
    await open(store, again, { permit: 'again' });
    await close(store, again, 'again');
    await settle(store, again, 'completed');
    await store.events.append(event('user.added'), T0);
    expect((await pruneAll(store)).total).toMatchObject({ calls: 1, permits: 1, decisions: 1 });
    expect(await store.threads.messages(thread, { limit: 9 })).toHaveLength(3);
  });

  test('S19 an unknown call keeps its thread until a person has ended it', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await open(store, ref, { permit: 'p1' });
    await close(store, ref, 'p1', { state: 'unknown' });
    await settle(store, ref, 'failed');
    const before = await visible(store);
    expect((await pruneAll(store)).total).toEqual(NOTHING);
    expect(await visible(store)).toEqual(before);
    const row = await store.calls.find(ref.run, { step: 0, call: 0 });
    await store.calls.resolve(row?.id ?? '', 'done', event('call.resolved', ref.run), T0);
    expect((await pruneAll(store)).total).toMatchObject({ calls: 1, decisions: 1 });
  });

  test.each(['prepared', 'sending'] as const)('S19 a reply that is %s keeps its thread', async (state) => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await reply(store, ref, 0, 'done');
    await settle(store, ref, 'completed');
    const row = state === 'sending' ? await store.deliveries.next(T0) : undefined;
    expect((await pruneAll(store)).total).toEqual({ ...NOTHING, decisions: 1 });
    expect(await store.deliveries.list({ limit: 9 })).toMatchObject([{ state }]);
    if (row === undefined) return;
    await store.deliveries.finish(row.id, 'unknown', event('delivery.unknown', ref.run), T0);
    expect((await pruneAll(store)).total).toMatchObject({ deliveries: 1, calls: 1 });
  });

  test('S19 a pinned file goes with the last ask that is bound to it', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const first = await worked(store);
    await settle(store, first.ref, 'completed');
    const second = await worked(store);
    const sha256 = first.asked.files[0]?.sha256 ?? '';
    expect(second.asked.files[0]?.sha256).toBe(sha256);
    await deliverAll(store);
    expect((await pruneAll(store)).total).toMatchObject({ approvals: 1, files: 0 });
    expect(await store.approvals.file(sha256)).toEqual(expect.any(String));
    await settle(store, second.ref, 'completed');
    expect((await pruneAll(store)).total).toMatchObject({ approvals: 1, files: 1 });
    expect(await store.approvals.file(sha256)).toBeUndefined();
    // Asked for again it is kept again.
    await post(store);
    await ask(store, refOf(await mustClaim(store)), { change: newAsk(T0) });
    expect(await store.approvals.file(sha256)).toEqual(expect.any(String));
  });

  test('S19 of events of no thread the passing ones go; the record of who was given what stays', async () => {
    const { store } = current;
    const all = Object.keys(EVENT_TYPES) as EventType[];
    for (const type of all) await store.events.append({ type, data: {} }, T0);
    await store.events.append({ type: 'sandbox.started', data: { late: true } }, T0 + 1);
    await store.events.append({ type: 'policy.loaded', data: {} }, T0);
    expect((await pruneAll(store)).total).toEqual({ ...NOTHING, events: PASSING_EVENTS.length });
    const left = (await store.events.read(0, {}, 1000)).map(({ type }) => type);
    expect(left).toEqual([...all.filter((type) => !PASSING_EVENTS.includes(type)), 'sandbox.started', 'policy.loaded']);
  });

  test('S20 the newest event stays, so that no cursor is given twice', async () => {
    const { store, world } = current;
    const ref = refOf(await claimedRun(store));
    await settle(store, ref, 'completed');
    const newest = await store.events.append({ type: 'sandbox.stopped', data: {} }, T0);
    await pruneAll(store);
    expect(await store.events.last()).toEqual(newest);
    const again = await world.reopen();
    expect((await again.events.append(event('user.added'), T0)).cursor).toBe(newest.cursor + 1);
    expect((await pruneAll(again)).total).toMatchObject({ events: 1 });
    expect((await again.events.read(0, {}, 100)).map(({ cursor }) => cursor)).toContain(newest.cursor + 1);
  });

  test('S20 one call removes about as much as it may, and says where to go on', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    for (let thread = 0; thread < 3; thread += 1) {
      const { ref } = await worked(store);
      await settle(store, ref, 'completed');
    }
    await deliverAll(store);
    await store.events.append(event('user.added'), T0);
    const { counts, next } = await store.retention.prune(ALL, 5);
    const removed = Object.values(counts).reduce((sum, count) => sum + count, 0);
    expect(removed).toBeGreaterThan(0);
    expect(removed).toBeLessThanOrEqual(6);
    expect(next).toEqual(expect.any(Number));
    const { calls } = await pruneAll(store, ALL, 5);
    expect(calls).toBeGreaterThan(5);
    expect(await store.approvals.list({ limit: 9 })).toEqual([]);
    for (const { id } of await store.threads.list('acme', 9)) expect(await store.events.read(0, { thread: id }, 9)).toEqual([]);
  });

  async function claimedMore(store: Store) {
    await post(store);
    return mustClaim(store);
  }
}
