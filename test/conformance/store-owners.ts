import { expect, test } from 'vitest';
import { addUser, claim, event, mustClaim, post, refOf, settle, T0, visible } from '../store/scene.ts';
import type { Current } from './store.ts';

/** What is asked by owner: tokens, users who are switched off, lists of their own, and what is counted and looked up without reading all. */
export function ownerClauses(current: Current): void {
  const token = (user: string, digest: string) =>
    current.store.users.addToken({ tenant: 'acme', user, digest, expiresAtMs: T0 + 1000, nowMs: T0 });
  const types = async () => (await current.store.events.read(0, {}, 1000)).map(({ type }) => type);

  test('users: revoking ends every token of one user, and of nobody else', async () => {
    const { store } = current;
    for (const name of ['ada', 'bob']) await addUser(store, name);
    for (const digest of ['a1', 'a2']) await token('ada', digest);
    await token('bob', 'b1');
    expect(await store.users.revokeTokens({ tenant: 'acme', name: 'ada', nowMs: T0 })).toBe(2);
    expect(await store.users.findByToken('a1', T0)).toBeUndefined();
    expect(await store.users.findByToken('b1', T0)).toMatchObject({ name: 'bob' });
    expect((await types()).at(-1)).toBe('user.tokens_revoked');
    const before = await visible(store);
    expect(await store.users.revokeTokens({ tenant: 'acme', name: 'ada', nowMs: T0 })).toBe(0);
    await expect(store.users.revokeTokens({ tenant: 'acme', name: 'eve', nowMs: T0 })).rejects.toMatchObject({ code: 'not_found' });
    expect(await visible(store)).toEqual(before);
  });

  test('users: tokens of a disabled user name nobody until the user is enabled again', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await token('ada', 'a1');
    const disable = (disabled: boolean) => store.users.setDisabled({ tenant: 'acme', name: 'ada', disabled, nowMs: T0 });
    expect(await disable(true)).toMatchObject({ name: 'ada', disabled: true });
    expect(await disable(true)).toMatchObject({ disabled: true });
    expect(await store.users.get('acme', 'ada')).toMatchObject({ disabled: true, slice: 0 });
    expect(await store.users.findByToken('a1', T0)).toBeUndefined();
    expect(await disable(false)).toMatchObject({ disabled: false });
    expect(await store.users.findByToken('a1', T0)).toMatchObject({ name: 'ada' });
    expect((await types()).filter((type) => type.startsWith('user.'))).toEqual([
      'user.added',
      'user.token_issued',
      'user.disabled',
      'user.enabled',
    ]);
    await expect(store.users.setDisabled({ tenant: 'acme', name: 'eve', disabled: true, nowMs: T0 })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('runs and threads are listed by the user for whom a run acts, newest first', async () => {
    const { store } = current;
    for (const name of ['ada', 'bob']) await addUser(store, name);
    const shared = await post(store, { actor: 'ada' });
    const second = await post(store, { actor: 'bob', thread: shared.thread.id });
    const own = await post(store, { actor: 'bob' });
    await post(store, { actor: 'ada' });
    const runsOf = async (actor: string) => (await store.runs.list({ tenant: 'acme', actor, limit: 9 })).map(({ id }) => id);
    expect(await runsOf('bob')).toEqual([own.run.id, second.run.id]);
    expect(await runsOf('eve')).toEqual([]);
    expect((await store.runs.list({ thread: shared.thread.id, actor: 'ada', limit: 9 })).map(({ id }) => id)).toEqual([shared.run.id]);
    const threadsOf = async (actor: string, limit = 9) => (await store.threads.list('acme', limit, actor)).map(({ id }) => id);
    expect(await threadsOf('bob')).toEqual([own.thread.id, shared.thread.id]);
    expect(await threadsOf('bob', 1)).toEqual([own.thread.id]);
    expect(await threadsOf("x' or 1=1 --")).toEqual([]);
    expect(await store.threads.list('other', 9, 'bob')).toEqual([]);
    expect(await store.threads.list('acme', 9)).toHaveLength(3);
  });

  test('runs: what has not ended is counted by state, parked ones by gate', async () => {
    const { store } = current;
    expect(await store.runs.unfinished()).toEqual([]);
    for (const name of ['ada', 'bob', 'cyd', 'dan']) {
      await addUser(store, name);
      await post(store, { actor: name });
    }
    const parked = await mustClaim(store);
    await store.runs.settle(refOf(parked), {
      to: 'parked',
      gate: { kind: 'unknown', ref: 'cal_1', reason: 'who knows' },
      outcome: 'parked',
      event: event('run.parked', parked.id),
      nowMs: T0,
    });
    await settle(store, refOf(await mustClaim(store)), 'completed');
    await claim(store);
    const counts = [...(await store.runs.unfinished())].sort((a, b) => (a.state < b.state ? -1 : 1));
    expect(counts).toEqual([
      { state: 'parked', gate: 'unknown', count: 1 },
      { state: 'queued', gate: undefined, count: 1 },
      { state: 'running', gate: undefined, count: 1 },
    ]);
  });

  test('S8 the newest event of all, of a thread and of a run', async () => {
    const { store } = current;
    expect(await store.events.last()).toBeUndefined();
    await addUser(store, 'ada');
    const { run, thread } = await post(store);
    const all = await store.events.read(0, {}, 100);
    const { cursor } = await store.events.append(event('policy.loaded'), T0);
    expect((await store.events.last())?.cursor).toBe(cursor);
    expect(await store.events.last({ run: run.id })).toEqual(all.at(-1));
    expect(await store.events.last({ thread: thread.id })).toEqual(all.at(-1));
    expect(await store.events.last({ run: 'run_x' })).toBeUndefined();
  });

  test('a probe writes and changes nothing', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const before = await visible(store);
    await store.probe();
    expect(await visible(store)).toEqual(before);
  });
}
