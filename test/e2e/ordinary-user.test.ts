import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CompareResults } from '../../adapters/compare/results.ts';
import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { kernelUsers } from '../support/sandbox-client.ts';

const LAUNCHER = join(import.meta.dirname, '..', '..', 'adapters', 'cli', 'launcher.js');

let dir: string;
beforeEach(async () => {
  // Whoever has the checkout builds it; others read it.
  await ensureGuest();
  dir = mkdtempSync(join(tmpdir(), 'outwork-user-'));
  mkdirSync(join(dir, 'tmp'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe.each(kernelUsers())('the command line as $name', (user) => {
  const gid = Number(execFileSync('id', ['-g', user.name], { encoding: 'utf8' }));
  const outwork = (...args: string[]) =>
    spawnSync(process.execPath, [LAUNCHER, ...args], {
      cwd: dir,
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: join(dir, 'tmp') },
      ...(user.uid === process.getuid?.() ? {} : { uid: user.uid, gid }),
    });
  beforeEach(() => {
    for (const path of [dir, join(dir, 'tmp')]) chownSync(path, user.uid, gid);
  });

  it('runs a turn', () => {
    expect(outwork('user', 'add', 'ann').status).toBe(0);
    const { status, stdout, stderr } = outwork('run', '--user', 'ann', 'hello');
    expect(status, stderr).toBe(0);
    expect(stdout.trim()).not.toBe('');
  });

  it('compares the placements and leaves no file', () => {
    const { status, stdout, stderr } = outwork('compare', '--quick', '--turns', '1', '--json');
    expect(status, stderr).toBe(0);
    expect((JSON.parse(stdout) as CompareResults).placements.map(({ failed }) => failed)).toEqual([0, 0, 0]);
    expect(readdirSync(join(dir, 'tmp'))).toEqual([]);
  });
});
