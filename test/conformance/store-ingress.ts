import { expect, test } from 'vitest';
import { addUser, claimedRun, event, post, refOf, settle, T0, visible } from '../store/scene.ts';
import type { Current } from './store.ts';

/** Users, threads, messages, events: what comes in, and S8 and S9. */
export function ingressClauses(current: Current): void {
  test('users: the slice is the lowest free one over all tenants, the same user is a conflict', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'ada', 'other');
    await addUser(store, 'bob');
    expect((await store.users.list()).map((user) => [user.tenant, user.name, user.slice])).toEqual([
      ['acme', 'ada', 0],
      ['acme', 'bob', 2],
      ['other', 'ada', 1],
    ]);
    await expect(addUser(store, 'ada')).rejects.toMatchObject({ code: 'conflict' });
    expect((await store.users.list('other')).map((user) => user.name)).toEqual(['ada']);
  });

  test('users: a token names its user until it expires', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await store.users.addToken({ tenant: 'acme', user: 'ada', digest: 'd1', expiresAtMs: T0 + 10, nowMs: T0 });
    expect(await store.users.findByToken('d1', T0 + 9)).toMatchObject({ tenant: 'acme', name: 'ada' });
    expect(await store.users.findByToken('d1', T0 + 10)).toBeUndefined();
    expect(await store.users.findByToken('d2', T0)).toBeUndefined();
    await expect(store.users.addToken({ tenant: 'acme', user: 'eve', digest: 'd3', expiresAtMs: 1, nowMs: T0 })).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(store.users.addToken({ tenant: 'acme', user: 'ada', digest: 'd1', expiresAtMs: 1, nowMs: T0 })).rejects.toMatchObject({
      code: 'conflict',
    });
  });

  test('threads: a post appends one message and one queued run; a thread of another tenant does not exist', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    await addUser(store, 'eve', 'other');
    const first = await post(store, { body: 'one' });
    const second = await post(store, { thread: first.thread.id, body: 'two' });
    expect(second.thread).toEqual(first.thread);
    expect([first.message.seq, second.message.seq]).toEqual([1, 2]);
    expect(second.run).toMatchObject({ state: 'queued', fence: 0, message: second.message.id, actor: 'ada' });
    const before = await visible(store);
    const foreign = { tenant: 'other', thread: first.thread.id, actor: 'eve', origin: 'interactive', body: 'x', nowMs: T0 } as const;
    await expect(store.threads.post(foreign)).rejects.toMatchObject({ code: 'not_found' });
    await expect(post(store, { actor: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await store.threads.get('other', first.thread.id)).toBeUndefined();
    expect(await visible(store)).toEqual(before);
  });

  test('threads: messages come in order of seq, the newest of those after a position', async () => {
    const { store } = current;
    await addUser(store, 'ada');
    const { thread } = await post(store, { body: '1' });
    for (const body of ['2', '3', '4']) await post(store, { thread: thread.id, body });
    const bodies = async (options: { afterSeq?: number; limit: number }) =>
      (await store.threads.messages(thread.id, options)).map((message) => message.body);
    expect(await bodies({ limit: 2 })).toEqual(['3', '4']);
    expect(await bodies({ afterSeq: 1, limit: 10 })).toEqual(['2', '3', '4']);
    expect(await bodies({ afterSeq: 4, limit: 10 })).toEqual([]);
  });

  test('threads: steering reaches a living run, from its own actor only', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await addUser(store, 'bob');
    const steer = { tenant: 'acme', run: run.id, actor: 'ada', body: 'stop that', nowMs: T0 };
    expect(await store.threads.steer(steer)).toMatchObject({ steers: true, run: run.id, author: 'user', seq: 2 });
    await expect(store.threads.steer({ ...steer, actor: 'bob' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(store.threads.steer({ ...steer, tenant: 'other' })).rejects.toMatchObject({ code: 'not_found' });
    await settle(store, refOf(run), 'completed');
    await expect(store.threads.steer(steer)).rejects.toMatchObject({ code: 'conflict' });
    expect(await store.threads.messages(run.thread, { limit: 10 })).toHaveLength(2);
  });

  test('S8 cursors grow by one, also after a refused write; a reader goes on from any cursor', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await expect(settle(store, { run: run.id, fence: 9 }, 'completed')).rejects.toThrow();
    await store.events.append(event('policy.loaded'), T0 + 5);
    await settle(store, refOf(run), 'completed');
    const all = await store.events.read(0, {}, 100);
    expect(all.map(({ cursor }) => cursor)).toEqual(all.map((_, at) => at + 1));
    expect(all.map(({ type }) => type)).toEqual([
      'user.added',
      'message.posted',
      'run.queued',
      'run.claimed',
      'policy.loaded',
      'run.completed',
    ]);
    expect(await store.events.read(4, {}, 1)).toEqual([all[4]]);
    expect((await store.events.read(0, { thread: run.thread }, 100)).map(({ type }) => type)).toEqual([
      'message.posted',
      'run.queued',
      'run.claimed',
    ]);
    expect((await store.events.read(0, { run: run.id, tenant: 'acme' }, 100)).at(-1)?.type).toBe('run.completed');
    expect(await store.events.read(0, { tenant: 'other' }, 100)).toEqual([]);
  });

  test('S8 a waiter is woken by the next event, by an abort and by close', async () => {
    const { store } = current;
    const never = new AbortController();
    const { cursor } = await store.events.append(event('policy.loaded'), T0);
    await store.events.changed(cursor - 1, never.signal);
    const woken = store.events.changed(cursor, never.signal);
    await store.events.append(event('policy.loaded'), T0);
    await woken;
    const abort = new AbortController();
    const aborted = store.events.changed(cursor + 1, abort.signal);
    abort.abort();
    await aborted;
    const closed = store.events.changed(cursor + 1, never.signal);
    const again = await current.world.reopen();
    await closed;
    // A store that was opened again knows that there are events already.
    await again.events.changed(cursor, never.signal);
  });

  test.each([
    ['NUL', 'a\0b'],
    ['a lone surrogate', 'a\ud800b'],
  ])('S9 text with %s is refused wherever it is written, and names nothing where it is read', async (_, text) => {
    const { store } = current;
    await addUser(store, 'ada');
    const before = await visible(store);
    await expect(post(store, { body: text })).rejects.toMatchObject({ code: 'text_unstorable' });
    await expect(addUser(store, text)).rejects.toMatchObject({ code: 'text_unstorable' });
    await expect(store.events.append({ type: 'run.progress', data: { deep: [{ text }] } }, T0)).rejects.toMatchObject({
      code: 'text_unstorable',
    });
    await expect(store.events.append({ type: 'run.progress', data: { [text]: 1 } }, T0)).rejects.toMatchObject({ code: 'text_unstorable' });
    expect(await store.runs.get(text)).toBeUndefined();
    expect(await store.users.get('acme', text)).toBeUndefined();
    expect(await store.threads.messages(text, { limit: 1 })).toEqual([]);
    expect(await store.calls.find(text, { step: 0, call: 0 })).toBeUndefined();
    expect(await visible(store)).toEqual(before);
  });

  test.each(["it's; drop table runs; --", '\\" ` ? :a $1 %', 'ünï ☃ 𝄞 \u2028\r\n\t', ''])(
    'S9 other text comes back as it was: %j',
    async (text) => {
      const { store } = current;
      await addUser(store, 'ada');
      const { thread, run } = await post(store, { body: text });
      expect((await store.threads.messages(thread.id, { limit: 1 }))[0]?.body).toBe(text);
      expect(await store.runs.get(text)).toBeUndefined();
      expect(await store.users.get('acme', text)).toBeUndefined();
      expect((await store.runs.list({ tenant: 'acme', limit: 9 })).map(({ id }) => id)).toEqual([run.id]);
      expect(await store.runs.list({ tenant: `acme' or '1'='1`, limit: 9 })).toEqual([]);
    },
  );
}
