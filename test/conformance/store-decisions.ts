import { expect, test } from 'vitest';
import type { DecisionRow } from '../../core/ports/store.ts';
import { placementInput } from '../policy/support/inputs.ts';
import { ALLOW, claimedRun, open, refOf, T0, visible } from '../store/scene.ts';
import type { Current } from './store.ts';

const row = (run: string, change: Partial<DecisionRow> = {}): DecisionRow => ({
  id: 'dec_1',
  run,
  kind: 'placement',
  capability: 'host-loop-shell',
  inputDigest: 'in-1',
  input: placementInput(),
  decision: ALLOW,
  atMs: T0,
  ...change,
});

/** The decision log: every decision, whatever it was about. */
export function decisionClauses(current: Current): void {
  test('a decision that belongs to no call is kept whole, beside those of calls', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const placed = row(run.id);
    await store.decisions.add(placed, refOf(run));
    await open(store, refOf(run), { permit: 'p1', decision: 'dec_2', nowMs: T0 + 1 });
    expect(await store.decisions.get('dec_1')).toEqual(placed);
    expect(await store.decisions.get('dec_2')).toMatchObject({ kind: 'call', capability: 'shell.exec', run: run.id });
    expect((await store.calls.decisions(run.id)).map(({ id }) => id)).toEqual(['dec_1', 'dec_2']);
    expect(await store.decisions.get('dec_3')).toBeUndefined();
  });

  test('without its input only the digest is kept', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    const { input: _, ...bare } = row(run.id);
    await store.decisions.add(bare);
    expect(await store.decisions.get('dec_1')).toEqual(bare);
  });

  test('the newest ones since a moment, oldest first', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    for (const [id, atMs] of [
      ['dec_c', T0 + 30],
      ['dec_a', T0 + 10],
      ['dec_d', T0 + 30],
      ['dec_b', T0 + 20],
    ] as const)
      await store.decisions.add(row(run.id, { id, atMs }));
    const ids = async (sinceMs: number, limit: number) => (await store.decisions.since(sinceMs, limit)).map(({ id }) => id);
    expect(await ids(0, 10)).toEqual(['dec_a', 'dec_b', 'dec_c', 'dec_d']);
    expect(await ids(T0 + 20, 10)).toEqual(['dec_b', 'dec_c', 'dec_d']);
    expect(await ids(0, 2)).toEqual(['dec_c', 'dec_d']);
    expect(await ids(T0 + 31, 10)).toEqual([]);
  });

  test('S2 an attempt that does not hold the run writes none; a second one of the same id is none; a run must exist', async () => {
    const { store } = current;
    const run = await claimedRun(store);
    await store.decisions.add(row(run.id), refOf(run));
    const before = await visible(store);
    const again = row(run.id, { id: 'dec_2' });
    await expect(store.decisions.add(again, { run: run.id, fence: run.fence + 1 })).rejects.toMatchObject({ code: 'stale_fence' });
    await expect(store.decisions.add(row(run.id))).rejects.toMatchObject({ code: 'conflict' });
    await expect(store.decisions.add(row('run_none', { id: 'dec_2' }))).rejects.toMatchObject({ code: 'not_found' });
    expect(await visible(store)).toEqual(before);
    expect(await store.decisions.since(0, 10)).toHaveLength(1);
  });
}
