import { beforeEach, describe, expect, it } from 'vitest';
import { DiskGuard, type Space, type Watched } from '../../../adapters/sandbox/disk/guard.ts';
import type { Clock } from '../../../core/seams/clock.ts';

const QUOTA = 1000;
const RESERVE = 500;

describe('the guard of the disk', () => {
  let space: Space;
  let nowMs: number;
  let guard: DiskGuard;
  let stopped: string[];
  let measured: string[];
  let timers: (() => void)[];

  beforeEach(() => {
    [space, nowMs, stopped, measured, timers] = [{ freeBytes: 10_000, usedBytes: 0, freeInodes: 1 }, 0, [], [], []];
    const clock: Clock = {
      now: () => nowMs,
      after(_, fn) {
        timers.push(fn);
        return () => {
          timers = timers.filter((timer) => timer !== fn);
        };
      },
    };
    guard = new DiskGuard({ clock, quotaBytes: QUOTA, reserveBytes: RESERVE, space: async () => space });
  });

  function owner(root: string, bytes: () => number | undefined, growing = true): Watched & { unwatch: () => void } {
    const watched: Watched = {
      root,
      growing,
      async measure() {
        measured.push(root);
        return bytes();
      },
      async stop(reason) {
        stopped.push(`${root}: ${reason}`);
        unwatch();
      },
    };
    const unwatch = guard.watch(watched);
    return { ...watched, unwatch };
  }

  it('BL-108 ends who is over the quota, and nobody else; the next start of that owner is for cleaning up', async () => {
    let bytes = 2000;
    owner('greedy', () => bytes);
    owner('modest', () => 10);
    await guard.look();
    expect(stopped).toEqual([expect.stringMatching(/^greedy: disk_full/)]);
    expect([await guard.admit('greedy'), await guard.admit('modest')]).toEqual(['clean-up', 'normal']);

    const again = owner('greedy', () => bytes, false);
    await guard.look();
    expect(stopped).toHaveLength(1);
    bytes = 100;
    nowMs += 60_000;
    await guard.look();
    again.unwatch();
    expect(await guard.admit('greedy')).toBe('normal');
  });

  it('does not walk through files again unless the file system could hide that the quota is passed, or a minute is over', async () => {
    owner('one', () => 400);
    await guard.look();
    space = { ...space, usedBytes: 500 };
    await guard.look();
    expect(measured).toEqual(['one']);
    space = { ...space, usedBytes: 601 };
    await guard.look();
    expect(measured).toEqual(['one', 'one']);
    nowMs += 60_000;
    await guard.look();
    expect(measured).toHaveLength(3);
  });

  it('a tree that cannot be measured counts as too large', async () => {
    owner('endless', () => undefined);
    await guard.look();
    expect(stopped).toEqual([expect.stringContaining('more than can be measured')]);
  });

  it('below the reserve no sandbox starts, everybody is measured, and who has most goes, one a look', async () => {
    owner('small', () => 10);
    owner('large', () => 900);
    owner('middle', () => 500);
    space = { ...space, freeBytes: RESERVE - 1 };
    await expect(guard.admit('new')).rejects.toMatchObject({ code: 'disk_full', retryable: true });
    await guard.look();
    await guard.look();
    expect(stopped.map((line) => line.split(':')[0])).toEqual(['large', 'middle']);
    space = { ...space, freeBytes: RESERVE };
    await guard.look();
    expect(stopped).toHaveLength(2);
    expect(await guard.admit('new')).toBe('normal');
  });

  it('a file system without inodes is full too', async () => {
    space = { ...space, freeInodes: 0.01 };
    await expect(guard.admit('new')).rejects.toMatchObject({ code: 'disk_full' });
  });

  it('looks by its timer while somebody is watched, and has none else', async () => {
    const { unwatch } = owner('one', () => 1);
    expect(timers).toHaveLength(1);
    timers.shift()?.();
    await guard.look();
    await new Promise((resolve) => setImmediate(resolve));
    expect(measured).toEqual(['one']);
    expect(timers).toHaveLength(1);
    unwatch();
    expect(timers).toHaveLength(0);
  });
});
