import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  addSubIdsCommand,
  findRange,
  freeRangeStart,
  readSubIds,
  SLICE_GIDS,
  SLICE_UIDS,
  sliceCount,
  sliceOf,
} from '../../adapters/sandbox/slices.ts';

const USER = { uid: 1500, name: 'kernel' };
const TABLE = 'other:100000:65536\nkernel:165536:65536\n1500:300000:65536\n';

describe('slices of the sub-id range', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'ow-sub-'));
  });
  afterAll(() => rm(dir, { recursive: true }));

  it('finds the first usable range, by name or by number', () => {
    expect(findRange(TABLE, USER, 4)).toEqual({ start: 165_536, count: 65_536 });
    expect(findRange('1500:300000:65536\n', USER, 4)).toEqual({ start: 300_000, count: 65_536 });
    expect(findRange('', USER, 4)).toBeUndefined();
  });

  it.each([
    ['too short', 'kernel:165536:3'],
    ['with the kernel’s own uid in it', 'kernel:1000:65536'],
    ['from 0', 'kernel:0:65536'],
    ['malformed', 'kernel:x:65536'],
  ])('does not take a range %s', (_, table) => {
    expect(findRange(table, USER, 4)).toBeUndefined();
  });

  it('N2 no two slices share an id, and all lie in the range', () => {
    const ids = { uids: { start: 165_536, count: 65_536 }, gids: { start: 165_536, count: 65_536 } };
    const outside = (maps: readonly { outside: number; count: number }[]) =>
      maps.flatMap(({ outside: first, count }) => Array.from({ length: count }, (_, i) => first + i));
    const index = fc.integer({ min: 0, max: sliceCount(ids) - 1 });
    fc.assert(
      fc.property(index, index, (a, b) => {
        for (const map of ['uidMap', 'gidMap'] as const) {
          const [first, second] = [outside(sliceOf(ids, a)[map]), outside(sliceOf(ids, b)[map])];
          expect(new Set(first).size).toBe(first.length);
          expect(Math.min(...first)).toBeGreaterThanOrEqual(165_536);
          expect(Math.max(...first)).toBeLessThan(165_536 + 65_536);
          if (a !== b) expect(first.filter((id) => second.includes(id))).toEqual([]);
        }
      }),
    );
  });

  it('serves as many owners as both ranges have room for, and then is exhausted', () => {
    const ids = { uids: { start: 1_000_000, count: 3 * SLICE_UIDS }, gids: { start: 1_000_000, count: 2 * SLICE_GIDS } };
    expect(sliceCount(ids)).toBe(2);
    expect(sliceOf(ids, 1).executorUid).toBe(1_000_004);
    for (const index of [2, -1, 0.5]) expect(() => sliceOf(ids, index)).toThrow(expect.objectContaining({ code: 'slice_exhausted' }));
  });

  it('a missing range is named together with the command that adds one', async () => {
    const uids = join(dir, 'subuid');
    await writeFile(uids, 'other:100000:65536\n');
    await expect(readSubIds(USER, { uids, gids: join(dir, 'none') })).rejects.toMatchObject({
      code: 'sub_ids_missing',
      hint: 'usermod --add-subuids 165536-231071 --add-subgids 165536-231071 kernel',
    });
  });

  it('offers a range above every other one', () => {
    expect(freeRangeStart(['a:100000:65536\n', 'b:900000:10\n'])).toBe(900_010);
    expect(freeRangeStart([''])).toBe(100_000);
    expect(addSubIdsCommand(USER, [''])).toContain('100000-165535');
  });
});
