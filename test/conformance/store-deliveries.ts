import { expect, test } from 'vitest';
import { addUser, claimedRun, close, event, mustClaim, open, post, refOf, reply, T0 } from '../store/scene.ts';
import type { Current } from './store.ts';

/** S11: replies are sent by one sender, and never again by themselves. */
export function deliveryClauses(current: Current): void {
  test('S11 a reply has its delivery at once; a call without one has none', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await open(store, refOf(run), { permit: 'p1' });
    await close(store, refOf(run), 'p1');
    expect(await store.deliveries.list({ limit: 9 })).toEqual([]);
    await reply(store, refOf(run), 1, 'hello');
    const [row] = await store.deliveries.list({ run: run.id, limit: 9 });
    expect(row).toMatchObject({
      tenant: 'acme',
      thread: run.thread,
      run: run.id,
      user: 'ada',
      body: 'hello',
      state: 'prepared',
      attempts: 0,
    });
    expect(row?.message).toBe((await store.threads.messages(run.thread, { limit: 1 }))[0]?.id);
  });

  test('S11 next claims a row for one sender; finish ends it once', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await reply(store, refOf(run), 0, 'hello');
    const claims = await Promise.all([1, 2, 3].map(() => store.deliveries.next(T0 + 1)));
    const [claimed, ...rest] = claims.filter((row) => row !== undefined);
    expect(rest).toEqual([]);
    expect(claimed).toMatchObject({ state: 'sending', attempts: 1, updatedAtMs: T0 + 1 });
    const id = claimed?.id ?? '';
    const sent = event('delivery.sent', run.id);
    expect(await store.deliveries.finish(id, 'delivered', sent, T0 + 2)).toMatchObject({ id, state: 'delivered' });
    for (const to of ['delivered', 'prepared', 'unknown'] as const) {
      await expect(store.deliveries.finish(id, to, sent, T0)).rejects.toMatchObject({ code: 'conflict' });
    }
    await expect(store.deliveries.finish('dlv_none', 'delivered', sent, T0)).rejects.toMatchObject({ code: 'not_found' });
    expect(await store.deliveries.next(T0 + 3)).toBeUndefined();
    expect((await store.events.read(0, {}, 99)).filter(({ type }) => type === 'delivery.sent')).toHaveLength(1);
  });

  test('S11 replies of a thread keep their order; one that failed does not hold up other threads', async () => {
    const { store } = current;
    const first = await claimedRun(store);
    await addUser(store, 'bob');
    await post(store, { actor: 'bob' });
    const second = await mustClaim(store);
    await reply(store, refOf(first), 0, 'a1');
    await reply(store, refOf(first), 1, 'a2');
    await reply(store, refOf(second), 0, 'b1');
    const failed = await store.deliveries.next(T0);
    expect(failed?.body).toBe('a1');
    await store.deliveries.finish(failed?.id ?? '', 'prepared', event('delivery.failed', first.id), T0);
    const bodies = [];
    for (let i = 0; i < 3; i += 1) {
      const row = await store.deliveries.next(T0);
      bodies.push(row?.body);
      await store.deliveries.finish(row?.id ?? '', 'delivered', event('delivery.sent'), T0);
    }
    expect(bodies).toEqual(['b1', 'a1', 'a2']);
  });

  test('S11 what a dead kernel was sending becomes unknown and is not sent again; what this one sends is left alone', async () => {
    const { store, world } = current;
    const run = await claimedRun(store);
    await reply(store, refOf(run), 0, 'one');
    await reply(store, refOf(run), 1, 'two');
    const sending = await store.deliveries.next(T0);
    // Control: a sweep of the living sender takes nothing from itself.
    expect(await store.deliveries.sweep(T0)).toEqual([]);
    const next = await world.reopen();
    expect(await next.deliveries.sweep(T0 + 5)).toMatchObject([{ id: sending?.id, state: 'unknown', updatedAtMs: T0 + 5 }]);
    expect((await next.events.read(0, { run: run.id }, 99)).at(-1)).toMatchObject({
      type: 'delivery.unknown',
      data: { delivery: sending?.id },
    });
    expect(await next.deliveries.next(T0 + 6)).toMatchObject({ body: 'two' });
    expect(await next.deliveries.next(T0 + 6)).toBeUndefined();
    expect(await next.deliveries.sweep(T0 + 7)).toEqual([]);
  });

  test('deliveries are listed newest first, by tenant, run and state', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await reply(store, refOf(run), 0, 'one');
    await reply(store, refOf(run), 1, 'two');
    await store.deliveries.next(T0);
    const bodies = async (filter: Omit<Parameters<typeof store.deliveries.list>[0], 'limit'>) =>
      (await store.deliveries.list({ ...filter, limit: 9 })).map(({ body }) => body);
    expect(await bodies({})).toEqual(['two', 'one']);
    expect(await bodies({ states: ['sending'] })).toEqual(['one']);
    expect(await bodies({ tenant: 'other' })).toEqual([]);
    expect(await bodies({ run: 'run_none' })).toEqual([]);
  });
}
