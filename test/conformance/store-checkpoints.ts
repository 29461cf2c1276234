import { expect, test } from 'vitest';
import { claimedRun, close, event, open, refOf, saveCheckpoint, settle, T0 } from '../store/scene.ts';
import type { Current } from './store.ts';

const flip = (body: Buffer): Buffer => {
  const at = Math.floor(body.length / 2);
  body[at] = (body[at] as number) ^ 0x01;
  return body;
};

/** S10, and what a redrive may come back to. */
export function checkpointClauses(current: Current): void {
  test('S10 the newest safe checkpoint is given, with the ledger position it was written at', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    expect(await store.checkpoints.latest(ref.run)).toBeUndefined();
    await saveCheckpoint(store, ref, 0, 'first');
    await saveCheckpoint(store, ref, 1, 'second');
    expect(await store.checkpoints.latest(ref.run)).toEqual({
      id: expect.stringMatching(/^chk_/),
      run: ref.run,
      fence: 1,
      schema: 'native',
      version: 1,
      body: 'second',
      ledgerPosition: 2,
      safe: true,
      createdAtMs: T0,
    });
  });

  test('S10 one written while a once call was in flight is never given', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await saveCheckpoint(store, ref, 0, 'safe');
    await open(store, ref, { key: { step: 1, call: 0 }, permit: 'p1' });
    await saveCheckpoint(store, ref, 2, 'unsafe');
    expect((await store.checkpoints.latest(ref.run))?.body).toBe('safe');
    await close(store, ref, 'p1');
    await saveCheckpoint(store, ref, 3, 'safe again');
    expect((await store.checkpoints.latest(ref.run))?.body).toBe('safe again');
  });

  test.each([
    ['cut to nothing', () => Buffer.alloc(0)],
    ['cut in half', (body: Buffer) => body.subarray(0, body.length / 2)],
    ['one byte short', (body: Buffer) => body.subarray(0, -1)],
    ['one bit flipped', flip],
  ])('S10 a checkpoint that is %s is not used: the one before it is, and with none left the run is told (BL-116)', async (_, damage) => {
    const { store, world } = current;
    const ref = refOf(await claimedRun(store));
    await saveCheckpoint(store, ref, 0, JSON.stringify({ step: 0, text: 'é'.repeat(50) }));
    const good = await store.checkpoints.latest(ref.run);
    await saveCheckpoint(store, ref, 1, JSON.stringify({ step: 1, text: 'é'.repeat(50) }));
    world.damageCheckpoint(ref.run, damage);
    expect(await store.checkpoints.latest(ref.run)).toEqual(good);
    const again = await world.reopen();
    expect(await again.checkpoints.latest(ref.run)).toEqual(good);
  });

  test('S10 when every kept checkpoint is damaged the run does not start over as if it had none (BL-116)', async () => {
    const { store, world } = current;
    const ref = refOf(await claimedRun(store));
    await saveCheckpoint(store, ref, 0, 'only one');
    world.damageCheckpoint(ref.run, flip);
    await expect(store.checkpoints.latest(ref.run)).rejects.toMatchObject({ code: 'checkpoint_damaged' });
  });

  test('S10 many checkpoints leave few behind, and the end of the run leaves none', async () => {
    const { store, world } = current;
    const ref = refOf(await claimedRun(store));
    for (let step = 0; step < 6; step += 1) await saveCheckpoint(store, ref, step, `at ${step}`);
    expect((await store.checkpoints.latest(ref.run))?.body).toBe('at 5');
    world.damageCheckpoint(ref.run, flip);
    expect((await store.checkpoints.latest(ref.run))?.body).toBe('at 4');
    await settle(store, ref, 'completed');
    expect(await store.checkpoints.latest(ref.run)).toBeUndefined();
  });

  test('S10 a parked run keeps its checkpoints until it is cancelled', async () => {
    const { store } = current;
    const ref = refOf(await claimedRun(store));
    await saveCheckpoint(store, ref, 0, 'half');
    await settle(store, ref, 'parked');
    expect((await store.checkpoints.latest(ref.run))?.body).toBe('half');
    await store.runs.requestCancel(ref.run, event('run.cancelled', ref.run), T0);
    expect(await store.checkpoints.latest(ref.run)).toBeUndefined();
  });
}
