import { expect, test } from 'vitest';
import type { Approval } from '../../core/approval/types.ts';
import type { Store } from '../../core/ports/store.ts';
import type { AttemptRef } from '../../core/run/types.ts';
import { answer, ask, callOf, claimedRun, close, event, mustClaim, open, park, refOf, T0, visible } from '../store/scene.ts';
import { newAsk, SCRIPT } from '../support/asked-approval.ts';
import type { Current } from './store.ts';

const HOUR = 3_600_000;

/** Types of the run's events, in order. */
export const eventTypes = async (store: Store, run: string): Promise<readonly string[]> =>
  (await store.events.read(0, { run }, 100)).map(({ type }) => type);

/** An ask whose run is parked on it. */
export async function parkedAsk(store: Store): Promise<{ readonly ref: AttemptRef; readonly approval: Approval }> {
  const ref = refOf(await claimedRun(store));
  const approval = await ask(store, ref);
  await park(store, ref, approval.id);
  return { ref, approval };
}

/** S12 to S14: asks, their answers and their use. */
export function approvalClauses(current: Current): void {
  const typesOf = (run: string) => eventTypes(current.store, run);
  const parked = () => parkedAsk(current.store);
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
}
