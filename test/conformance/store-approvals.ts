import { expect, test } from 'vitest';
import {
  answer,
  ask,
  callOf,
  claimedRun,
  close,
  event,
  LEASE_MS,
  mustClaim,
  open,
  park,
  post,
  refOf,
  settle,
  T0,
  visible,
} from '../store/scene.ts';
import { newAsk, SCRIPT } from '../support/asked-approval.ts';
import type { Current } from './store.ts';

const HOUR = 3_600_000;

/** S12 to S17: asks, their answers and their use. */
export function approvalClauses(current: Current): void {
  const typesOf = async (run: string) => (await current.store.events.read(0, { run }, 100)).map(({ type }) => type);
  /** An ask whose run is parked on it. */
  const parked = async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const approval = await ask(store, ref);
    await park(store, ref, approval.id);
    return { ref, approval };
  };
  const use = ({ id, fingerprint }: { id: string; fingerprint: string }) => ({ approval: { id, fingerprint } });

  test('S12 an ask comes with its prepared row, its decision, its files, its delivery and one event', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const approval = await ask(store, refOf(run), { decision: 'd1' });
    const [row] = await store.calls.list(run.id);
    expect(row).toMatchObject({ state: 'prepared', permit: undefined, closedAtMs: undefined, outcome: undefined, decision: 'd1' });
    expect(approval).toMatchObject({
      ...{
        tenant: 'acme',
        thread: run.thread,
        run: run.id,
        call: row?.id,
        key: { step: 0, call: 0 },
        actor: 'ada',
        capability: 'shell.exec',
      },
      ...{ effectClass: 'once', decision: 'd1', state: 'pending', createdAtMs: T0, expiresAtMs: T0 + HOUR, answeredBy: undefined },
    });
    expect(await store.approvals.get(approval.id)).toEqual(approval);
    expect(await store.approvals.live(run.id, { step: 0, call: 0 })).toEqual(approval);
    expect(await store.approvals.list({ limit: 9 })).toEqual([approval]);
    const [file] = approval.files;
    expect(Buffer.from((await store.approvals.file(file?.sha256 ?? '')) ?? '', 'base64').toString()).toBe(SCRIPT);
    const deliveries = await store.deliveries.list({ limit: 9 });
    expect(deliveries).toMatchObject([
      { kind: 'approval', approval: approval.id, state: 'prepared', message: '', run: run.id, user: 'ada' },
    ]);
    expect(deliveries[0]?.body).toContain(approval.shown.text);
    expect((await typesOf(run.id)).slice(-1)).toEqual(['approval.requested']);
    expect(await store.calls.decisions(run.id)).toHaveLength(1);
  });

  test('S12 the same ask again makes none; another one of the call withdraws the first', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const first = await ask(store, ref);
    expect(await ask(store, ref)).toEqual(first);
    expect(await store.deliveries.list({ limit: 9 })).toHaveLength(1);
    const second = await ask(store, ref, { change: { fingerprint: 'e'.repeat(64) } });
    expect(second.id).not.toBe(first.id);
    expect(await store.approvals.get(first.id)).toMatchObject({ state: 'withdrawn', endedAtMs: T0 });
    expect(await store.approvals.live(ref.run, { step: 0, call: 0 })).toEqual(second);
    await answer(store, second.id, 'approved');
    const third = await ask(store, ref, { change: { fingerprint: 'e'.repeat(64) } });
    expect(third.id).not.toBe(second.id);
    expect(await store.deliveries.list({ limit: 9 })).toHaveLength(3);
    expect((await typesOf(ref.run)).slice(-2)).toEqual(['approval.withdrawn', 'approval.requested']);
  });

  test('S12 an ask whose time is over stands for no other', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const first = await ask(store, ref);
    expect((await ask(store, ref, { nowMs: T0 + HOUR })).id).toBe(first.id);
    expect((await ask(store, ref, { nowMs: T0 + HOUR + 1 })).id).not.toBe(first.id);
  });

  test('S12 only the attempt that holds the run asks, and a call is asked for or handed over, not both', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const before = await visible(store);
    await expect(ask(store, { ...ref, fence: 2 })).rejects.toMatchObject({ code: 'stale_fence' });
    const call = { key: { step: 0, call: 0 }, ask: newAsk(T0) };
    await expect(store.calls.open(ref, { ...callOf(ref), ...call })).rejects.toThrow(TypeError);
    expect(await visible(store)).toEqual(before);
  });

  test('S13 of several answers at once one counts; the others change nothing', async () => {
    const { store } = current;
    const { approval } = await parked();
    const ends = await Promise.allSettled([
      answer(store, approval.id, 'approved'),
      answer(store, approval.id, 'denied'),
      answer(store, approval.id, 'approved'),
    ]);
    const won = ends.filter((end) => end.status === 'fulfilled');
    expect(won).toHaveLength(1);
    for (const end of ends) if (end.status === 'rejected') expect(end.reason).toMatchObject({ code: 'conflict' });
    const before = await visible(store);
    await expect(answer(store, approval.id, 'approved')).rejects.toMatchObject({ code: 'conflict' });
    await expect(answer(store, 'apr_none', 'approved')).rejects.toMatchObject({ code: 'not_found' });
    expect(await visible(store)).toEqual(before);
  });

  test('S13 an answer says who and when; after the time to answer there is none', async () => {
    const { store } = current;
    const { approval } = await parked();
    const before = await visible(store);
    await expect(answer(store, approval.id, 'approved', T0 + HOUR + 1)).rejects.toMatchObject({ code: 'approval_expired' });
    expect(await visible(store)).toEqual(before);
    const given = await store.approvals.answer({
      approval: approval.id,
      to: 'approved',
      by: 'boss',
      decision: 'd9',
      note: 'ok',
      nowMs: T0 + HOUR,
    });
    expect(given).toEqual({
      ...approval,
      ...{ state: 'approved', answeredAtMs: T0 + HOUR, answeredBy: 'boss', answerDecision: 'd9', note: 'ok', useByMs: T0 + HOUR + 600_000 },
    });
    expect(await store.approvals.get(approval.id)).toEqual(given);
  });

  test('S13 a denial closes the row of its call, for every redrive', async () => {
    const { store } = current;
    const { ref, approval } = await parked();
    await answer(store, approval.id, 'denied', T0 + 5);
    const row = await store.calls.find(ref.run, { step: 0, call: 0 });
    expect(row).toMatchObject({ state: 'done', closedAtMs: T0 + 5, outcome: { kind: 'denied', reasons: [{ code: 'approval_denied' }] } });
    expect((await typesOf(ref.run)).slice(-3)).toEqual(['approval.denied', 'call.denied', 'run.woken']);
    const next = refOf(await mustClaim(store));
    expect(await open(store, next)).toEqual({ kind: 'recorded', row });
  });

  test('S14 an approval is used once, in the write that hands its call over', async () => {
    const { store } = current;
    const { approval } = await parked();
    await answer(store, approval.id, 'approved');
    const next = refOf(await mustClaim(store));
    const opened = await open(store, next, { ...use(approval), permit: 'p1' });
    expect(opened).toMatchObject({ kind: 'opened', row: { state: 'dispatched', permit: 'p1', fence: 2 } });
    expect(await store.approvals.get(approval.id)).toMatchObject({ state: 'consumed', endedAtMs: T0 });
    expect(await store.approvals.live(next.run, { step: 0, call: 0 })).toBeUndefined();
    const before = await visible(store);
    expect((await open(store, next, use(approval))).kind).toBe('in_flight');
    await expect(open(store, next, { ...use(approval), key: { step: 1, call: 0 } })).rejects.toMatchObject({ code: 'approval_unusable' });
    expect(await visible(store)).toEqual(before);
    await close(store, next, 'p1', { state: 'unknown' });
    const row = await store.calls.find(next.run, { step: 0, call: 0 });
    await store.calls.resolve(row?.id ?? '', 'not-done', event('call.resolved', next.run), T0);
    await expect(open(store, next, use(approval))).rejects.toMatchObject({ code: 'approval_unusable' });
  });

  test('S14 of two dispatches at once one uses it', async () => {
    const { store } = current;
    const { approval } = await parked();
    await answer(store, approval.id, 'approved');
    const next = refOf(await mustClaim(store));
    const ends = await Promise.allSettled([open(store, next, use(approval)), open(store, next, use(approval))]);
    const kinds = ends.map((end) => (end.status === 'fulfilled' ? end.value.kind : end.reason.code));
    expect(kinds.sort()).toEqual(['in_flight', 'opened']);
  });

  test('S14 not for another call, another fingerprint, another state, or after its time', async () => {
    const { store } = current;
    const { approval } = await parked();
    await answer(store, approval.id, 'approved');
    const next = refOf(await mustClaim(store));
    const other = await ask(store, next, { key: { step: 5, call: 0 } });
    const before = await visible(store);
    for (const wrong of [
      { ...use(approval), key: { step: 1, call: 0 } },
      { ...use({ ...approval, fingerprint: 'e'.repeat(64) }) },
      { ...use({ ...approval, id: 'apr_none' }) },
      { ...use(other), key: { step: 5, call: 0 } },
      { ...use(approval), nowMs: T0 + 600_001 },
    ]) {
      await expect(open(store, next, wrong)).rejects.toMatchObject({ code: 'approval_unusable' });
    }
    expect(await visible(store)).toEqual(before);
    expect((await open(store, next, { ...use(approval), nowMs: T0 + 600_000 })).kind).toBe('opened');
  });

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
