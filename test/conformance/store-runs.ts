import { expect, test } from 'vitest';
import type { RunState } from '../../core/run/types.ts';
import { addUser, claim, claimedRun, event, LEASE_MS, mustClaim, open, post, refOf, settle, T0, visible } from '../store/scene.ts';
import type { Current } from './store.ts';
import { runListClauses } from './store-run-lists.ts';

/** S1 to S4: claims, fences, transitions, leases. */
export function runClauses(current: Current): void {
  test('S1 a claim gives lease, deadline and a fence one higher, and the deadline of the first claim stays', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    expect(run).toMatchObject({
      state: 'running',
      fence: 1,
      leaseHolder: 'kernel-1',
      leaseUntilMs: T0 + LEASE_MS,
      deadlineMs: T0 + 1_800_000,
    });
    expect(await claim(store)).toBeUndefined();
    await settle(store, refOf(run), 'queued');
    const again = await mustClaim(store, { holder: 'kernel-2', nowMs: T0 + 500 });
    expect(again).toMatchObject({ id: run.id, fence: 2, leaseHolder: 'kernel-2', deadlineMs: run.deadlineMs, reclaims: 1 });
    expect((await store.runs.attempts(run.id)).map(({ fence, outcome, endedAtMs }) => [fence, outcome, endedAtMs])).toEqual([
      [1, 'exited', T0],
      [2, undefined, undefined],
    ]);
  });

  test('S1 one active run per thread, whoever the actor is; a parked run keeps its thread; order within a thread', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'bob');
    const { thread, run: first } = await post(store, { actor: 'ada' });
    const { run: second } = await post(store, { thread: thread.id, actor: 'bob' });
    const running = await mustClaim(store);
    expect(running.id).toBe(first.id);
    expect(await claim(store, { perUser: 9 })).toBeUndefined();
    await settle(store, refOf(running), 'parked');
    expect(await claim(store, { perUser: 9 })).toBeUndefined();
    await store.runs.move(first.id, { to: 'queued', from: ['parked'], event: event('run.woken', first.id), nowMs: T0 });
    expect((await mustClaim(store)).id).toBe(first.id);
    await settle(store, { run: first.id, fence: 2 }, 'completed');
    expect((await mustClaim(store)).id).toBe(second.id);
  });

  test('S1 at most perUser active runs of one user; others are not held up; oldest message first', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'bob');
    const runs = [];
    for (const actor of ['ada', 'ada', 'bob', 'ada']) runs.push((await post(store, { actor })).run.id);
    const claimed = [];
    for (let i = 0; i < 4; i += 1) claimed.push((await claim(store, { perUser: 2 }))?.id);
    expect(claimed).toEqual([runs[0], runs[1], runs[2], undefined]);
    expect((await claim(store, { perUser: 3 }))?.id).toBe(runs[3]);
  });

  test('S1 a parked run holds its thread, and no room of its user', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const [first, second] = [await post(store), await post(store)];
    const parked = await mustClaim(store);
    expect(await claim(store)).toBeUndefined();
    await settle(store, refOf(parked), 'parked');
    expect([first.run.id, (await mustClaim(store)).id]).toEqual([parked.id, second.run.id]);
  });

  test('S1 users of one name in two tenants have their own room', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'ada', 'other');
    await post(store);
    await store.threads.post({ tenant: 'other', actor: 'ada', origin: 'interactive', body: 'x', nowMs: T0 });
    expect([await mustClaim(store), await mustClaim(store)].map(({ tenant }) => tenant)).toEqual(['acme', 'other']);
  });

  test('S1 of many claimers at once each run goes to one', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    for (let i = 0; i < 5; i += 1) await post(store);
    const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => claim(store, { holder: `k${i}`, perUser: 99 })));
    const ids = claims.filter((run) => run !== undefined).map(({ id }) => id);
    expect(ids).toHaveLength(5);
    expect(new Set(ids).size).toBe(5);
  });

  test('S2 a stale attempt changes nothing, also under the same holder name (BL-110)', async () => {
    const { store } = current;
    const old = await claimedRun(store);
    const permit = await open(store, refOf(old), { permit: 'p-old' });
    expect(permit.kind).toBe('opened');
    await store.runs.expire(T0 + LEASE_MS, 3);
    const now = await mustClaim(store, { holder: old.leaseHolder, nowMs: T0 + LEASE_MS });
    expect(now.fence).toBe(old.fence + 1);
    const before = await visible(store);
    for (const [name, write] of Object.entries(fencedWrites(current, 'p-old'))) {
      const code = name === 'heartbeat' ? 'lease_lost' : 'stale_fence';
      await expect(write(refOf(old)), name).rejects.toMatchObject({ code });
      await expect(write({ run: old.id, fence: now.fence + 1 }), name).rejects.toMatchObject({ code });
      await expect(write({ run: 'run_none', fence: 1 }), name).rejects.toMatchObject({ code });
    }
    expect(await visible(store)).toEqual(before);
    // Control: the same writes are good under the current fence.
    const { close: _, ...others } = fencedWrites(current, 'p-old');
    for (const [name, write] of Object.entries(others)) await expect(write(refOf(now)), name).resolves.not.toThrow();
  });

  test.each(['queued', 'parked', 'completed', 'failed'] as const)('S2 after a settle to %s the attempt is over', async (to) => {
    const { store } = current;
    const run = await claimedRun(store);
    await open(store, refOf(run), { permit: 'p1' });
    await settle(store, refOf(run), to);
    const before = await visible(store);
    for (const [name, write] of Object.entries(fencedWrites(current, 'p1'))) {
      await expect(write(refOf(run)), name).rejects.toMatchObject({ code: name === 'heartbeat' ? 'lease_lost' : 'stale_fence' });
    }
    expect(await visible(store)).toEqual(before);
  });

  test('S3 settle admits the listed transitions only', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await expect(settle(store, refOf(run), 'cancelled')).rejects.toMatchObject({ code: 'illegal_transition' });
    const cancelling = { to: 'cancelling', outcome: 'x', event: event('run.cancelling'), nowMs: T0 } as const;
    await expect(store.runs.settle(refOf(run), cancelling)).rejects.toMatchObject({ code: 'illegal_transition' });
    await store.runs.requestCancel(run.id, event('run.cancelling', run.id), T0);
    for (const to of ['queued', 'parked'] as const) {
      await expect(settle(store, refOf(run), to)).rejects.toMatchObject({ code: 'illegal_transition' });
    }
    expect(await settle(store, refOf(run), 'cancelled', T0 + 7)).toMatchObject({
      state: 'cancelled',
      endedAtMs: T0 + 7,
      leaseHolder: undefined,
      cancelRequested: true,
    });
  });

  test('S3 move touches no held run but to ask it to cancel, and only from the states it names', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const move = (to: Exclude<RunState, 'running'>, from: readonly RunState[]) =>
      store.runs.move(run.id, { to, from, event: event('run.woken', run.id), nowMs: T0, failure: 'gone' });
    const before = await visible(store);
    for (const to of ['queued', 'parked', 'completed', 'failed', 'cancelled'] as const) {
      await expect(move(to, ['running']), to).rejects.toMatchObject({ code: 'illegal_transition' });
    }
    await expect(move('queued', ['parked'])).rejects.toMatchObject({ code: 'illegal_transition' });
    expect(await visible(store)).toEqual(before);
    expect(await move('cancelling', ['running'])).toMatchObject({ state: 'cancelling', cancelRequested: true, leaseHolder: 'kernel-1' });
    await expect(move('cancelled', ['cancelling'])).rejects.toMatchObject({ code: 'illegal_transition' });
    await settle(store, refOf(run), 'failed');
    await expect(move('queued', ['failed'])).rejects.toMatchObject({ code: 'illegal_transition' });
    await expect(
      store.runs.move('run_none', { to: 'queued', from: ['parked'], event: event('run.woken'), nowMs: T0 }),
    ).rejects.toMatchObject({ code: 'not_found' });
  });

  test('S3 a parked run shows its gate until it is woken or ends', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    expect(await settle(store, refOf(run), 'parked')).toMatchObject({ gate: { kind: 'unknown', ref: 'cal_x' }, leaseUntilMs: undefined });
    const woken = await store.runs.move(run.id, { to: 'queued', from: ['parked'], event: event('run.woken', run.id), nowMs: T0 });
    expect(woken).toMatchObject({ state: 'queued', gate: undefined, fence: 1 });
  });

  test('S3 cancellation ends queued and parked runs at once, asks a running one, and leaves an ended one', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const { run: queued } = await post(store);
    const cancel = (id: string) => store.runs.requestCancel(id, event('run.cancelling', id), T0 + 1);
    expect(await cancel(queued.id)).toMatchObject({ state: 'cancelled', endedAtMs: T0 + 1, cancelRequested: true });
    expect(await cancel(run.id)).toMatchObject({ state: 'cancelling', cancelRequested: true });
    expect(await store.runs.heartbeat(refOf(run), T0 + 2, LEASE_MS)).toEqual({ cancelRequested: true });
    const before = await visible(store);
    expect(await cancel(run.id)).toMatchObject({ state: 'cancelling' });
    expect(await cancel(queued.id)).toMatchObject({ state: 'cancelled', endedAtMs: T0 + 1 });
    expect(await visible(store)).toEqual(before);
    await expect(cancel('run_none')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('S4 an expired lease goes back to the queue while the budget lasts, then fails; a heartbeat keeps it', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await store.runs.heartbeat(refOf(run), T0 + 20_000, LEASE_MS);
    expect(await store.runs.expire(T0 + 20_000 + LEASE_MS - 1, 1)).toEqual([]);
    const [back] = await store.runs.expire(T0 + 20_000 + LEASE_MS, 1);
    expect(back).toMatchObject({ id: run.id, state: 'queued', reclaims: 1, leaseHolder: undefined, leaseUntilMs: undefined });
    await mustClaim(store, { nowMs: T0 + 60_000 });
    const [failed] = await store.runs.expire(T0 + 90_000, 1);
    expect(failed).toMatchObject({ state: 'failed', failure: 'reclaim_budget_exhausted', endedAtMs: T0 + 90_000 });
    expect((await store.runs.attempts(run.id)).map(({ outcome }) => outcome)).toEqual(['lease_expired', 'lease_expired']);
    const types = (await store.events.read(0, { run: run.id }, 100)).map(({ type }) => type);
    expect(types.slice(-3)).toEqual(['run.reclaimed', 'run.claimed', 'run.failed']);
  });

  test('S4 a kernel that alone owns its state ends the leases of any other holder at once, and not its own', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'bob');
    const dead = await post(store);
    await post(store, { actor: 'bob' });
    await mustClaim(store, { holder: 'dead' });
    await mustClaim(store, { holder: 'alive' });
    expect(await store.runs.expire(T0, 3)).toEqual([]);
    expect(await store.runs.expire(T0, 3, 'alive')).toMatchObject([{ id: dead.run.id, state: 'queued', reclaims: 1 }]);
  });

  test('S4 a cancelling run whose lease expires ends cancelled', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await store.runs.requestCancel(run.id, event('run.cancelling', run.id), T0);
    expect(await store.runs.expire(T0 + LEASE_MS, 3)).toMatchObject([{ state: 'cancelled', endedAtMs: T0 + LEASE_MS }]);
  });

  test('S4 a clock that is set back neither ends a lease early nor lets it live for ever (BL-112)', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const back = T0 - 600_000;
    expect(await store.runs.expire(back, 3)).toEqual([]);
    expect((await store.runs.get(run.id))?.leaseUntilMs).toBe(back + LEASE_MS);
    expect(await store.runs.heartbeat(refOf(run), back + 1000, LEASE_MS)).toEqual({ cancelRequested: false });
    expect(await store.runs.expire(back + 1000 + LEASE_MS - 1, 3)).toEqual([]);
    expect(await store.runs.expire(back + 1000 + LEASE_MS, 3)).toMatchObject([{ id: run.id, state: 'queued' }]);
  });

  runListClauses(current);
}

/** Every write that takes an attempt's word, each under its name. */
function fencedWrites({ store }: Current, permit: string) {
  return {
    heartbeat: (ref) => store.runs.heartbeat(ref, T0 + LEASE_MS, LEASE_MS),
    seat: (ref) =>
      store.runs.seat(ref, {
        placement: 'host-loop-shell',
        engine: 'bubblewrap',
        sandbox: 's',
        event: event('run.placed', ref.run),
        nowMs: T0,
      }),
    judge: (ref) => store.calls.judge(ref, T0),
    open: (ref) => open(store, ref, { key: { step: 7, call: 0 } }),
    close: (ref) =>
      store.calls.close(ref, {
        permit,
        outcome: { kind: 'error', code: 'x', message: 'late' },
        state: 'done',
        effect: { kind: 'message', body: 'late' },
        event: event('call.completed', ref.run),
        nowMs: T0,
      }),
    settle: (ref) => settle(store, ref, 'completed'),
  } satisfies Record<string, (ref: { run: string; fence: number }) => Promise<unknown>>;
}
