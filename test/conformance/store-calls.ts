import { expect, test } from 'vitest';
import {
  ALLOW,
  addUser,
  callOf,
  claimedRun,
  close,
  event,
  LEASE_MS,
  mustClaim,
  open,
  post,
  RESULT,
  refOf,
  reply,
  settle,
  spentOf,
  T0,
  visible,
} from '../store/scene.ts';
import { newAsk } from '../support/asked-approval.ts';
import type { Current } from './store.ts';

/** S5 to S7 and S18: the effect ledger. */
export function callClauses(current: Current): void {
  test('S5 opening writes decision, row, permit and event together', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const opened = await open(store, refOf(run), { permit: 'p1', decision: 'd1', nowMs: T0 + 5 });
    expect(opened).toMatchObject({
      kind: 'opened',
      row: { state: 'dispatched', fence: 1, permit: 'p1', decision: 'd1', openedAtMs: T0 + 5 },
    });
    expect(await store.calls.find(run.id, { step: 0, call: 0 })).toEqual(opened.row);
    expect(await store.calls.list(run.id)).toEqual([opened.row]);
    expect(await store.calls.decisions(run.id)).toEqual([
      { id: 'd1', run: run.id, kind: 'call', capability: 'shell.exec', inputDigest: 'in-1', decision: ALLOW, atMs: T0 + 5 },
    ]);
    expect((await store.events.read(0, { run: run.id }, 100)).at(-1)?.type).toBe('call.dispatched');
  });

  test('S5 a key is opened once: in flight, recorded, or nondeterministic, each without a write', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await open(store, ref, { permit: 'p1' });
    const before = await visible(store);
    expect((await open(store, ref)).kind).toBe('in_flight');
    expect((await open(store, ref, { argsDigest: 'other' })).kind).toBe('nondeterministic');
    expect((await open(store, ref, { capability: 'fs.read' })).kind).toBe('nondeterministic');
    expect(await visible(store)).toEqual(before);
    const row = await close(store, ref, 'p1');
    const after = await visible(store);
    expect(await open(store, ref)).toEqual({ kind: 'recorded', row });
    expect(row).toMatchObject({ state: 'done', outcome: RESULT, closedAtMs: T0 });
    expect((await open(store, ref, { argsDigest: 'other' })).kind).toBe('nondeterministic');
    expect(await visible(store)).toEqual(after);
  });

  test('S5 the key is (run, step, call): neither part nor another run matches', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await post(store);
    const other = refOf(await mustClaim(store, { perUser: 2 }));
    for (const [of, key] of [
      [ref, { step: 1, call: 2 }],
      [ref, { step: 2, call: 1 }],
      [ref, { step: 12, call: 0 }],
      [other, { step: 1, call: 2 }],
    ] as const) {
      expect((await open(store, of, { key })).kind).toBe('opened');
    }
    expect((await store.calls.list(ref.run)).map(({ key }) => [key.step, key.call])).toEqual([
      [1, 2],
      [2, 1],
      [12, 0],
    ]);
  });

  test('S5 a refused call is recorded done at once and has no permit', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const outcome = { kind: 'denied', reasons: [{ code: 'no', message: 'not allowed' }] } as const;
    const denied = await open(store, ref, { outcome });
    expect(denied).toMatchObject({ kind: 'recorded', row: { state: 'done', outcome, permit: undefined, closedAtMs: T0 } });
    expect((await open(store, ref)).kind).toBe('recorded');
    await expect(store.calls.open(ref, { ...callOf(ref, { key: { step: 1, call: 0 } }), outcome })).rejects.toThrow(TypeError);
  });

  test('S5 a call that waits at a gate is prepared, without a permit, and is opened again when it goes on', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const gate = { kind: 'credential', ref: 'github', reason: 'missing' } as const;
    const waiting = await open(store, ref, { gate, decision: 'd1', nowMs: T0 + 5 });
    expect(waiting).toMatchObject({ kind: 'waiting', gate, row: { state: 'prepared', permit: undefined, decision: 'd1' } });
    expect((await store.events.read(0, { run: ref.run }, 100)).at(-1)?.type).toBe('credential.missing');
    expect((await store.calls.decisions(ref.run)).map(({ id }) => id)).toEqual(['d1']);
    expect((await open(store, ref, { argsDigest: 'other' })).kind).toBe('nondeterministic');
    expect(await open(store, ref, { permit: 'p1' })).toMatchObject({ kind: 'opened', row: { id: waiting.row.id, state: 'dispatched' } });
    const outcome = { kind: 'denied', reasons: [{ code: 'no', message: 'not allowed' }] } as const;
    await expect(store.calls.open(ref, { ...callOf(ref, { key: { step: 1, call: 0 }, outcome }), gate })).rejects.toThrow(TypeError);
  });

  test('S17 an approval stays what it is while its call waits for a credential', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    const asked = await open(store, ref, { ask: newAsk(T0) });
    if (asked.kind !== 'parked') throw new Error(asked.kind);
    await store.approvals.answer({ approval: asked.approval.id, to: 'approved', by: 'boss', decision: 'd9', nowMs: T0 });
    await open(store, ref, { gate: { kind: 'credential', ref: 'github', reason: 'missing' } });
    const { id, fingerprint } = asked.approval;
    expect((await store.approvals.get(id))?.state).toBe('approved');
    expect((await open(store, ref, { approval: { id, fingerprint } })).kind).toBe('opened');
    expect((await store.approvals.get(id))?.state).toBe('consumed');
  });

  test('S6 a permit is closed once, by its own run, before its deadline', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await post(store);
    const other = refOf(await mustClaim(store, { perUser: 2 }));
    await expect(open(store, ref, { deadlineMs: T0 - 1 })).rejects.toMatchObject({ code: 'permit_expired' });
    await open(store, ref, { permit: 'p1', deadlineMs: T0 + 100 });
    const before = await visible(store);
    await expect(close(store, other, 'p1')).rejects.toMatchObject({ code: 'not_found' });
    await expect(close(store, ref, 'p2')).rejects.toMatchObject({ code: 'not_found' });
    await expect(close(store, ref, 'p1', { nowMs: T0 + 101 })).rejects.toMatchObject({ code: 'permit_expired' });
    expect(await visible(store)).toEqual(before);
    expect(await close(store, ref, 'p1', { nowMs: T0 + 100 })).toMatchObject({ state: 'done' });
    await expect(close(store, ref, 'p1')).rejects.toMatchObject({ code: 'conflict' });
  });

  test('S6 of two closes at once one wins, and one reply is made', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await open(store, ref, { permit: 'p1' });
    const effect = { kind: 'message', body: 'once' } as const;
    const ends = await Promise.allSettled([close(store, ref, 'p1', { effect }), close(store, ref, 'p1', { effect })]);
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await store.deliveries.list({ limit: 9 })).toHaveLength(1);
    expect(await store.threads.messages((await store.threads.list('acme', 1))[0]?.id ?? '', { limit: 9 })).toHaveLength(2);
  });

  test('S6 after its deadline a permit can only be closed as unknown', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await open(store, ref, { permit: 'p1', deadlineMs: T0 + 100 });
    expect(await close(store, ref, 'p1', { state: 'unknown', nowMs: T0 + 500 })).toMatchObject({ state: 'unknown', closedAtMs: T0 + 500 });
    expect((await open(store, ref)).kind).toBe('unknown');
    await open(store, ref, { key: { step: 1, call: 0 }, permit: 'p2' });
    await expect(close(store, ref, 'p2', { state: 'unknown', effect: { kind: 'message', body: 'x' } })).rejects.toThrow(TypeError);
  });

  test('S6 a permit id and a decision id are used once', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await open(store, ref, { permit: 'p1', decision: 'd1' });
    const before = await visible(store);
    await expect(open(store, ref, { key: { step: 1, call: 0 }, permit: 'p1' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(open(store, ref, { key: { step: 1, call: 0 }, decision: 'd1' })).rejects.toMatchObject({ code: 'conflict' });
    expect(await visible(store)).toEqual(before);
  });

  test('S18 a call counts what it reserved until it is closed, then what it spent, from the time of its end', async () => {
    const { store, world } = current;
    const run = await claimedRun(store);
    const ref = refOf(run);
    const of = (dimension: string) => `acme ada ${run.thread} ${dimension}`;
    await open(store, ref, { permit: 'p1', reserved: { wallMs: 120_000, outputBytes: 4096 }, deadlineMs: T0 + 60_000 });
    await open(store, ref, { key: { step: 1, call: 0 }, permit: 'p2' });
    const reserved = { [of('wallMs')]: 120_000, [of('outputBytes')]: 4096 };
    expect(await spentOf(store, T0)).toEqual(reserved);
    expect(await spentOf(store, T0 + 60_000)).toEqual(reserved);
    // It could not go on after its deadline.
    expect(await spentOf(store, T0 + 60_001)).toEqual({});
    await close(store, ref, 'p1', { spent: { wallMs: 700 }, nowMs: T0 + 1000 });
    await close(store, ref, 'p2', { spent: { tokens: 5 }, nowMs: T0 + 2000 });
    const spent = { [of('wallMs')]: 700, [of('tokens')]: 5 };
    expect(await spentOf(store, T0)).toEqual(spent);
    expect(await spentOf(store, T0 + 1001)).toEqual({ [of('tokens')]: 5 });
    expect(await spentOf(await world.reopen(), T0)).toEqual(spent);
  });

  test('S18 what an attempt left open counts in full, beside what the next one spends on the same call', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const at = { reserved: { wallMs: 100 }, effectClass: 'pure' } as const;
    await open(store, refOf(run), { ...at, permit: 'p1', deadlineMs: T0 + 90_000 });
    await store.runs.expire(T0 + LEASE_MS, 3);
    const next = refOf(await mustClaim(store, { nowMs: T0 + LEASE_MS }));
    await store.calls.judge(next, T0 + LEASE_MS);
    const nowMs = T0 + LEASE_MS;
    await open(store, next, { ...at, permit: 'p2', nowMs });
    await close(store, next, 'p2', { spent: { wallMs: 7 }, nowMs });
    expect(await spentOf(store, nowMs)).toEqual({ [`acme ada ${run.thread} wallMs`]: 107 });
    // A refused call spends nothing, whatever it would have reserved.
    await open(store, next, { ...at, key: { step: 9, call: 0 }, outcome: { kind: 'denied', reasons: [] } });
    // An end that tells no amount leaves what was reserved.
    await open(store, next, { ...at, key: { step: 8, call: 0 }, permit: 'p3', nowMs });
    await close(store, next, 'p3', { state: 'unknown', nowMs });
    expect(await spentOf(store, nowMs)).toEqual({ [`acme ada ${run.thread} wallMs`]: 207 });
  });

  test('S18 every thread and actor has its own sum', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'bo');
    const wanted: Record<string, number> = {};
    for (const [step, actor] of ['ada', 'ada', 'bo'].entries()) {
      const { thread } = await post(store, { actor });
      const ref = refOf(await mustClaim(store, { perUser: 9 }));
      await open(store, ref, { permit: `p${step}`, reserved: { tokens: 10 ** step } });
      wanted[`acme ${actor} ${thread.id} tokens`] = 10 ** step;
    }
    expect(await spentOf(store, T0)).toEqual(wanted);
  });

  test('S7 judge leaves nothing dispatched: once is unknown, the rest may run again, and old permits are void', async () => {
    const { store } = current;
    const old = refOf(await claimedRun(store));
    const classes = ['once', 'idempotent', 'pure', 'once'] as const;
    for (const [step, effectClass] of classes.entries())
      await open(store, old, { key: { step, call: 0 }, effectClass, permit: `p${step}` });
    await close(store, old, 'p3');
    await store.runs.expire(T0 + LEASE_MS, 3);
    const now = refOf(await mustClaim(store, { nowMs: T0 + LEASE_MS }));
    const unknown = await store.calls.judge(now, T0 + LEASE_MS);
    expect(unknown.map(({ key, state }) => [key.step, state])).toEqual([[0, 'unknown']]);
    expect((await store.calls.list(old.run)).map(({ state }) => state)).toEqual(['unknown', 'prepared', 'prepared', 'done']);
    expect((await store.events.read(0, { run: old.run }, 100)).filter(({ type }) => type === 'call.unknown')).toHaveLength(1);
    for (const permit of ['p0', 'p1', 'p2']) await expect(close(store, now, permit)).rejects.toMatchObject({ code: 'conflict' });
    expect(await store.calls.judge(now, T0 + LEASE_MS)).toEqual([]);
    expect((await open(store, now, { key: { step: 0, call: 0 } })).kind).toBe('unknown');
    const again = await open(store, now, { key: { step: 1, call: 0 }, effectClass: 'idempotent', permit: 'p9' });
    expect(again).toMatchObject({ kind: 'opened', row: { fence: now.fence, permit: 'p9', state: 'dispatched' } });
    expect((await store.calls.list(old.run))[1]?.id).toBe(again.row.id);
    expect((await open(store, now, { key: { step: 2, call: 0 }, argsDigest: 'changed' })).kind).toBe('nondeterministic');
  });

  test('S7 a row that an older attempt left dispatched is unknown until it is judged', async () => {
    const { store } = current;
    const old = refOf(await claimedRun(store));
    await open(store, old, { permit: 'p0' });
    await settle(store, old, 'queued');
    expect((await open(store, refOf(await mustClaim(store)))).kind).toBe('unknown');
  });

  test('a person ends an unknown row, once: done is replayed, not-done runs again', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    for (const step of [0, 1, 2]) await open(store, ref, { key: { step, call: 0 }, permit: `p${step}` });
    await close(store, ref, 'p2', { state: 'unknown' });
    const rows = await store.calls.judge(ref, T0);
    expect(rows).toHaveLength(2);
    const resolve = (at: number, as: 'done' | 'not-done') => {
      const id = (at === 2 ? late : rows[at])?.id ?? '';
      return store.calls.resolve(id, as, event('call.resolved', ref.run), T0 + 9);
    };
    const late = await store.calls.find(ref.run, { step: 2, call: 0 });
    expect(await resolve(0, 'done')).toMatchObject({
      state: 'done',
      closedAtMs: T0 + 9,
      outcome: { kind: 'error', code: 'resolved_as_done' },
    });
    expect(await resolve(1, 'not-done')).toMatchObject({ state: 'prepared', outcome: undefined, permit: undefined, closedAtMs: undefined });
    expect(await resolve(2, 'done')).toMatchObject({ state: 'done', outcome: RESULT });
    for (const at of [0, 1, 2]) await expect(resolve(at, 'done')).rejects.toMatchObject({ code: 'conflict' });
    await expect(store.calls.resolve('cal_none', 'done', event('call.resolved'), T0)).rejects.toMatchObject({ code: 'not_found' });
    expect((await open(store, ref, { key: { step: 1, call: 0 } })).kind).toBe('opened');
    expect((await open(store, ref, { key: { step: 0, call: 0 } })).kind).toBe('recorded');
  });

  test('a reply is appended with its call, for the actor of the run', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await addUser(store, 'bob');
    await reply(store, refOf(run), 0, 'done, ada');
    expect((await store.threads.messages(run.thread, { limit: 9 })).at(-1)).toMatchObject({
      seq: 2,
      author: 'agent',
      user: 'ada',
      run: run.id,
      body: 'done, ada',
      steers: false,
    });
    expect((await store.events.read(0, { run: run.id }, 99)).slice(-2).map(({ type }) => type)).toEqual([
      'call.completed',
      'message.posted',
    ]);
  });
}
