import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { StoreError } from '../../core/errors.ts';
import { Deliverer } from '../../core/run/deliver.ts';
import type { Delivery } from '../../core/seams/delivery.ts';
import { callWorld } from '../support/call-world.ts';
import { fullDisk } from '../support/full-disk.ts';

it('BL-108 a reply whose channel refused it while the disk was full is not lost: it is sent again when there is room', async () => {
  const world = await callWorld();
  await call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'message.post', args: { body: 'the reply' } });
  const disk = fullDisk(world.store);
  const sent: string[] = [];
  const delivery: Delivery = {
    name: 'test',
    async deliver({ body }) {
      sent.push(body);
      if (sent.length > 1) return;
      disk.full = true;
      throw new Error('not now');
    },
  };
  const errors: unknown[] = [];
  await using deliverer = new Deliverer({ store: disk.store, clock: world.clock, delivery, onError: (error) => errors.push(error) });
  const states = async () => (await world.store.deliveries.list({ limit: 10 })).map(({ state }) => state);
  deliverer.kick();
  const turns = async () => {
    for (let i = 0; i < 20; i += 1) await setImmediate();
  };
  await turns();
  expect(await states()).toEqual(['sending']);
  disk.full = false;
  world.clock.advance(2000);
  await turns();
  expect(await states()).toEqual(['prepared']);
  world.clock.advance(5000);
  await turns();
  expect(await states()).toEqual(['delivered']);
  expect(sent).toEqual(['the reply', 'the reply']);
  expect(errors.map(String)).toEqual(['Error: not now']);
  expect(errors.some((error) => error instanceof StoreError)).toBe(false);
});

it('a channel that never answers keeps no kernel from closing; whether it was sent is told as unknown by the next one', async () => {
  const world = await callWorld();
  await call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'message.post', args: { body: 'the reply' } });
  const sending = Promise.withResolvers<void>();
  const delivery: Delivery = {
    name: 'test',
    deliver: () => {
      sending.resolve();
      return new Promise(() => {});
    },
  };
  const deliverer = new Deliverer({ store: world.store, clock: world.clock, delivery, onError: (error) => expect.fail(String(error)) });
  deliverer.kick();
  await sending.promise;
  const closing = deliverer[Symbol.asyncDispose]();
  await setImmediate();
  world.clock.advance(5000);
  await closing;
  expect((await world.store.deliveries.list({ limit: 10 })).map(({ state }) => state)).toEqual(['sending']);
});
