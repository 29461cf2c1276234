import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultStateDir, ensureStateDir, stateDirFault } from '../../adapters/config/state-dir.ts';
import { PrerequisiteError } from '../../core/errors.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'outwork-state-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const refused = (dir: string) => {
  try {
    ensureStateDir(dir);
  } catch (error) {
    if (error instanceof PrerequisiteError) return error.code;
    throw error;
  }
  return undefined;
};

describe('ensureStateDir', () => {
  it('makes the directory and its parents, closed to others whatever the umask', () => {
    const dir = join(base, 'a', 'b');
    const before = process.umask(0);
    try {
      ensureStateDir(dir);
    } finally {
      process.umask(before);
    }
    expect(statSync(dir).mode & 0o7777).toBe(0o700);
    expect(refused(dir)).toBeUndefined();
  });

  it.each([0o770, 0o707, 0o701, 0o710, 0o740])('refuses mode %o, and takes the directory once it is closed', (mode) => {
    const dir = join(base, 'open');
    mkdirSync(dir);
    chmodSync(dir, mode);
    expect(refused(dir)).toBe('state_directory_unusable');
    expect(stateDirFault(dir)?.fix).toBe(`chmod 700 ${dir}`);
    chmodSync(dir, 0o700);
    expect(refused(dir)).toBeUndefined();
  });

  it('refuses a symbolic link, a file, and a path too long for a socket', () => {
    symlinkSync(base, join(base, 'link'));
    writeFileSync(join(base, 'file'), '');
    expect(refused(join(base, 'link'))).toBe('state_directory_unusable');
    expect(refused(join(base, 'file'))).toBe('state_directory_unusable');
    expect(refused(join(base, 'file', 'below'))).toBe('state_directory_unusable');
    expect(refused(join(base, 'x'.repeat(100)))).toBe('state_directory_unusable');
  });

  it.runIf(process.geteuid?.() === 0)('refuses a directory of another user', () => {
    const dir = join(base, 'foreign');
    mkdirSync(dir, { mode: 0o700 });
    chownSync(dir, 12345, 12345);
    expect(refused(dir)).toBe('state_directory_unusable');
  });
});

describe('defaultStateDir', () => {
  it('follows XDG_STATE_HOME, and ignores a relative one', () => {
    expect(defaultStateDir({ XDG_STATE_HOME: '/s', HOME: '/h' })).toBe('/s/outwork');
    expect(defaultStateDir({ XDG_STATE_HOME: 's', HOME: '/h' })).toBe('/h/.local/state/outwork');
    expect(defaultStateDir({ HOME: '/h' })).toBe('/h/.local/state/outwork');
  });
});
