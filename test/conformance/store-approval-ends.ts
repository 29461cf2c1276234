import { expect, test } from 'vitest';
import { answer, ask, claimedRun, event, LEASE_MS, mustClaim, open, park, post, refOf, settle, T0, visible } from '../store/scene.ts';
import type { Current } from './store.ts';
import { eventTypes, parkedAsk } from './store-approvals.ts';

const HOUR = 3_600_000;

/** S15 to S17: how asks end by themselves, and what they do to the runs that wait for them. */
export function approvalEndClauses(current: Current): void {
  const typesOf = (run: string) => eventTypes(current.store, run);
  const parked = () => parkedAsk(current.store);

  test('S15 what is not answered, or not used, in time expires, and its call is refused', async () => {
    const { store } = current;
    const { ref, approval } = await parked();
    expect(await store.approvals.expire(T0 + HOUR)).toEqual([]);
    const expired = await store.approvals.expire(T0 + HOUR + 1);
    expect(expired).toMatchObject([{ id: approval.id, state: 'expired', endedAtMs: T0 + HOUR + 1 }]);
    expect(await store.approvals.get(approval.id)).toEqual(expired[0]);
    expect(await store.calls.find(ref.run, { step: 0, call: 0 })).toMatchObject({
      state: 'done',
      outcome: { kind: 'denied', reasons: [{ code: 'approval_expired' }] },
    });
    expect((await typesOf(ref.run)).slice(-3)).toEqual(['approval.expired', 'call.denied', 'run.woken']);
    const before = await visible(store);
    expect(await store.approvals.expire(T0 + 2 * HOUR)).toEqual([]);
    await expect(answer(store, approval.id, 'approved')).rejects.toMatchObject({ code: 'approval_expired' });
    expect(await visible(store)).toEqual(before);

    const next = refOf(await mustClaim(store, { nowMs: T0 }));
    const unused = await ask(store, next, { key: { step: 1, call: 0 } });
    await answer(store, unused.id, 'approved');
    expect(await store.approvals.expire(T0 + 600_000)).toEqual([]);
    expect(await store.approvals.expire(T0 + 600_001)).toMatchObject([{ id: unused.id, state: 'expired' }]);
  });

  test('S16 an answer wakes the run that waits for it, and its deadline does not count the time', async () => {
    const { store } = current;
    const { ref, approval } = await parked();
    const deadlineMs = (await store.runs.get(ref.run))?.deadlineMs ?? 0;
    await answer(store, approval.id, 'approved', T0 + 50_000);
    expect(await store.runs.get(ref.run)).toMatchObject({ state: 'queued', gate: undefined, deadlineMs: deadlineMs + 50_000 });
    expect((await typesOf(ref.run)).slice(-2)).toEqual(['approval.approved', 'run.woken']);
  });

  test('S16 a run that waits for something else, or has not parked yet, is not woken', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const approval = await ask(store, ref);
    await settle(store, ref, 'parked');
    await answer(store, approval.id, 'approved');
    expect(await store.runs.get(ref.run)).toMatchObject({ state: 'parked', gate: { kind: 'unknown' } });
  });

  test('S16 a run does not stay parked on an ask that has its answer', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const approval = await ask(store, ref);
    await answer(store, approval.id, 'approved');
    expect(await park(store, ref, approval.id)).toMatchObject({ state: 'queued', gate: undefined });
    expect((await typesOf(ref.run)).slice(-2)).toEqual(['run.parked', 'run.woken']);
    // Control: one that waits still is parked on.
    const next = refOf(await mustClaim(store));
    const waiting = await ask(store, next, { key: { step: 1, call: 0 } });
    expect(await park(store, next, waiting.id)).toMatchObject({ state: 'parked', gate: { ref: waiting.id } });
  });

  test('S17 a call that is handed over without it, or refused in another way, withdraws its ask', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const outcome = { kind: 'denied', reasons: [{ code: 'no', message: 'no' }] } as const;
    for (const [step, at] of [{}, { outcome }].entries()) {
      const approval = await ask(store, ref, { key: { step, call: 0 } });
      const other = await ask(store, ref, { key: { step, call: 1 } });
      await answer(store, approval.id, 'approved');
      await open(store, ref, { key: { step, call: 0 }, ...at });
      expect(await store.approvals.get(approval.id)).toMatchObject({ state: 'withdrawn' });
      expect(await store.approvals.get(other.id)).toMatchObject({ state: 'pending' });
      await expect(answer(store, approval.id, 'approved')).rejects.toMatchObject({ code: 'conflict' });
    }
  });

  test('S17 a run that ends withdraws what is live of it, however it ends', async () => {
    const { store } = current;
    const ends = [
      async (ref: { run: string; fence: number }) => settle(store, ref, 'completed'),
      async (ref: { run: string; fence: number }) => settle(store, ref, 'failed'),
      async (ref: { run: string; fence: number }) => {
        await settle(store, ref, 'parked');
        await store.runs.requestCancel(ref.run, event('run.cancelled', ref.run), T0);
      },
      async (ref: { run: string; fence: number }) => {
        await settle(store, ref, 'parked');
        await store.runs.move(ref.run, { from: ['parked'], to: 'failed', failure: 'x', event: event('run.failed', ref.run), nowMs: T0 });
      },
      async () => store.runs.expire(T0 + LEASE_MS, 0),
    ];
    await claimedRun(store).then((run) => settle(store, refOf(run), 'completed'));
    for (const end of ends) {
      await post(store);
      const ref = refOf(await mustClaim(store));
      const waiting = await ask(store, ref);
      const given = await ask(store, ref, { key: { step: 1, call: 0 } });
      await answer(store, given.id, 'approved');
      await end(ref);
      expect((await store.approvals.list({ run: ref.run, limit: 9 })).map(({ state }) => state)).toEqual(['withdrawn', 'withdrawn']);
      await expect(answer(store, waiting.id, 'approved')).rejects.toMatchObject({ code: 'conflict' });
    }
  });

  test('asks, answers and files survive a restart', async () => {
    const { world } = current;
    const { approval } = await parked();
    const again = await world.reopen();
    expect(await again.approvals.get(approval.id)).toEqual(approval);
    expect(await again.approvals.file(approval.files[0]?.sha256 ?? '')).toBeDefined();
    await answer(again, approval.id, 'approved');
    expect(await again.runs.get(approval.run)).toMatchObject({ state: 'queued' });
  });

  test('lists by tenant, run, actor and state, newest first', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const first = await ask(store, ref);
    const second = await ask(store, ref, { key: { step: 1, call: 0 } });
    await answer(store, first.id, 'approved');
    const ids = async (filter: object) => (await store.approvals.list({ limit: 9, ...filter })).map(({ id }) => id);
    expect(await ids({})).toEqual([second.id, first.id]);
    expect(await ids({ limit: 1 })).toEqual([second.id]);
    expect(await ids({ states: ['approved'] })).toEqual([first.id]);
    expect(await ids({ tenant: 'acme', run: ref.run, actor: 'ada' })).toEqual([second.id, first.id]);
    for (const none of [{ tenant: 'other' }, { run: 'run_x' }, { actor: 'bob' }, { states: ['denied'] }])
      expect(await ids(none)).toEqual([]);
  });
}
