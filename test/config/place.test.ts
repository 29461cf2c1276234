import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { placeFault } from '../../adapters/config/place.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'outwork-place-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe('placeFault', () => {
  it.each([
    ['/proc/x', 'proc'],
    [`/proc/${process.pid}/x/y`, 'proc'],
    ['/sys/x', 'sysfs'],
    ['/dev/x', 'devices'],
    ['/dev', 'devices'],
  ])('%s is no place: %s keeps no files', (path, type) => {
    expect(placeFault(path)).toContain(`keeps no files (${type})`);
  });

  it('control: a folder that is there, one that is not, and shared memory are places', () => {
    expect([placeFault(base), placeFault(join(base, 'a', 'b')), placeFault('/dev/shm/x'), placeFault('/development')]).toEqual([
      ...[undefined, undefined, undefined, undefined],
    ]);
  });

  it('below a file nothing can be made', () => {
    writeFileSync(join(base, 'file'), '', { mode: 0o700 });
    expect(placeFault(join(base, 'file'))).toBe(`${join(base, 'file')} is not a directory`);
    expect(placeFault(join(base, 'file', 'x'))).toBe(`${join(base, 'file')} is not a directory`);
  });

  it('changes nothing', () => {
    mkdirSync(join(base, 'a'));
    placeFault(join(base, 'a', 'b', 'c'));
    expect(placeFault(join(base, 'a', 'b'))).toBeUndefined();
    expect(() => rmSync(join(base, 'a', 'b'))).toThrow(/ENOENT/);
  });
});
