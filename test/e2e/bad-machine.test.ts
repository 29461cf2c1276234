import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const LAUNCHER = join(import.meta.dirname, '..', '..', 'adapters', 'cli', 'launcher.js');

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-bad-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const options = () =>
  ({
    cwd: dir,
    env: { PATH: process.env.PATH ?? '', HOME: dir, XDG_STATE_HOME: join(dir, 's') },
    encoding: 'utf8',
    // A command that hangs fails its test by its exit code instead of holding the suite.
    timeout: 60_000,
  }) as const;
const outwork = (...args: string[]) => spawnSync(process.execPath, [LAUNCHER, ...args], options());

const errorOf = ({ status, stdout, stderr }: ReturnType<typeof outwork>) => {
  expect(stderr).not.toMatch(/^ +at /m);
  return { status, ...JSON.parse(stdout).error };
};

describe('a state directory that cannot be one', () => {
  it.each([
    ['user', 'ls'],
    ['run', '--user', 'ann', 'hi'],
    ['serve', '--listen', '127.0.0.1:0'],
    ['policy', 'status'],
  ])('%s %s refuses /proc, /sys and /dev at once, and makes nothing', (...command) => {
    for (const place of ['/proc/outwork', `/proc/${process.pid}/outwork/s`, '/sys/outwork', '/dev/outwork', '/dev/null/outwork']) {
      const error = errorOf(outwork('--state', place, '--json', ...command));
      expect(error).toMatchObject({ status: 3, code: 'state_directory_unusable', hint: expect.stringContaining('--state') });
    }
    expect(existsSync('/dev/outwork')).toBe(false);
  });

  it('compare refuses such a place for its report before it measures anything', () => {
    expect(errorOf(outwork('compare', '--out', '/proc/report', '--json'))).toMatchObject({ status: 2, code: 'invalid_argument' });
  });

  it('control: a directory that is there and one that has to be made are taken', () => {
    mkdirSync(join(dir, 'there'), { mode: 0o700 });
    for (const place of [join(dir, 'there'), join(dir, 'not', 'yet')]) expect(outwork('--state', place, 'user', 'ls').status).toBe(0);
  });
});
