import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockStateDir } from '../../adapters/store/state-lock.ts';
import { lineOf, startChild } from './children.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-state-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('a second kernel is refused and told the process that owns the directory; after release it is admitted', async () => {
  const lock = await lockStateDir(dir);
  await expect(lockStateDir(dir)).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringContaining(`process ${process.pid}`),
  });
  const other = startChild('lock-process.ts', [dir]);
  expect(await lineOf(other)).toBe('state_locked');
  await other.ended();
  await lock.release();
  await lock.release();
  await (await lockStateDir(dir)).release();
});

test('the lock ends with a kernel that is killed, and names it while it lives', async () => {
  const child = startChild('lock-process.ts', [dir]);
  expect(await lineOf(child)).toBe('locked');
  await expect(lockStateDir(dir)).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringContaining(`process ${child.process.pid}`),
  });
  await child.kill();
  await (await lockStateDir(dir)).release();
});

test('two directories have two owners', async () => {
  const one = await lockStateDir(join(dir, 'one'));
  const two = await lockStateDir(join(dir, 'two'));
  await one.release();
  await two.release();
});

test('a missing directory is made for its owner only', async () => {
  const lock = await lockStateDir(join(dir, 'new', 'state'));
  expect(statSync(join(dir, 'new', 'state')).mode & 0o777).toBe(0o700);
  await lock.release();
});

test.each([0o755, 0o710, 0o701, 0o770])('a directory of mode %o is refused with the cure, and left as it is', async (mode) => {
  chmodSync(dir, mode);
  await expect(lockStateDir(dir)).rejects.toMatchObject({ code: 'state_directory_unusable', hint: `chmod 700 ${dir}` });
  expect(statSync(dir).mode & 0o777).toBe(mode);
  // Control: the mode was the reason.
  chmodSync(dir, 0o700);
  await (await lockStateDir(dir)).release();
});

test('what cannot be written is refused with the reason of the system, and the cure where that is room', async () => {
  symlinkSync('/dev/full', join(dir, 'kernel.pid'));
  await expect(lockStateDir(dir)).rejects.toMatchObject({
    code: 'state_directory_unusable',
    message: expect.stringMatching(/cannot be written: ENOSPC/),
    hint: expect.stringContaining('free some room'),
  });
  rmSync(join(dir, 'kernel.pid'));
  rmSync(join(dir, 'kernel.lock'));
  mkdirSync(join(dir, 'kernel.lock'));
  await expect(lockStateDir(dir)).rejects.toMatchObject({
    code: 'state_directory_unusable',
    message: expect.stringMatching(/kernel\.lock cannot be locked: unable to open/),
    hint: undefined,
  });
});

test('a file in its place is refused', async () => {
  writeFileSync(join(dir, 'file'), '');
  await expect(lockStateDir(join(dir, 'file'))).rejects.toMatchObject({ code: 'state_directory_unusable' });
});
