import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FileOperation, FileResult } from '../../../core/ports/placement.ts';
import { operate } from '../../../harnesses/guest/file-operations.ts';
import { type GuestProcess, startGuest } from '../../support/guest-process.ts';
import { livePids } from '../../support/live-pids.ts';

let guest: GuestProcess;
beforeAll(async () => {
  guest = await startGuest();
});
afterAll(async () => {
  expect(guest.membrane.faults).toEqual([]);
  await guest[Symbol.asyncDispose]();
});

const file = async (operation: FileOperation): Promise<FileResult> => {
  const reply = await guest.membrane.file(operation);
  if (reply.file === undefined) throw Object.assign(new Error(reply.error?.message), { code: reply.error?.code });
  return reply.file;
};
const read = (path: string, maxBytes = 65_536) => file({ op: 'read', path, maxBytes });
const write = (path: string, body: string, more: { encoding?: 'utf8' | 'base64'; append?: boolean } = {}) =>
  file({ op: 'write', path, body, encoding: 'utf8', ...more });
const list = (path: string, maxEntries = 100) => file({ op: 'list', path, maxEntries });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error) => error.code,
  );
const inside = (...names: string[]) => join(guest.workspace, ...names);

describe('reading and writing', () => {
  it('writes with its parents, as the tool uid, and reads it back', async () => {
    expect(await write('a/b/c.txt', 'grüße\n')).toEqual({ op: 'write', size: 8 });
    expect(await read('a/b/c.txt')).toEqual({ op: 'read', body: 'grüße\n', encoding: 'utf8', size: 8, truncated: false });
    expect(lstatSync(inside('a/b/c.txt'))).toMatchObject({ uid: guest.toolUid, gid: guest.helperGid });
    expect(readdirSync(inside('a/b'))).toEqual(['c.txt']);
  });

  it('keeps the mode of a file that it replaces, and leaves readers of the old one alone', async () => {
    await write('tool.sh', 'old');
    chmodSync(inside('tool.sh'), 0o755);
    const old = lstatSync(inside('tool.sh')).ino;
    await write('tool.sh', 'new');
    expect(lstatSync(inside('tool.sh')).mode & 0o777).toBe(0o755);
    expect(lstatSync(inside('tool.sh')).ino).not.toBe(old);
  });

  it('appends', async () => {
    await write('log', 'one\n', { append: true });
    expect(await write('log', 'two\n', { append: true })).toEqual({ op: 'write', size: 8 });
    expect(readFileSync(inside('log'), 'utf8')).toBe('one\ntwo\n');
  });

  it('brings bytes that are no text, or hold a NUL, as base64', async () => {
    const bytes = Buffer.from([0, 1, 0xff, 0xfe, 0x80]);
    await write('bytes', bytes.toString('base64'), { encoding: 'base64' });
    expect(await read('bytes')).toEqual({ op: 'read', body: bytes.toString('base64'), encoding: 'base64', size: 5, truncated: false });
  });

  it('cuts a long file on a character boundary and says how long it is', async () => {
    await write('long', '─'.repeat(1000));
    expect(await read('long', 100)).toEqual({ op: 'read', body: '─'.repeat(33), encoding: 'utf8', size: 3000, truncated: true });
  });

  it('refuses what is too large, and writes what is just not', async () => {
    expect(await codeOf(write('big', 'x'.repeat(512 * 1024 + 1)))).toBe('file_too_large');
    expect(existsSync(inside('big'))).toBe(false);
    expect(await codeOf(write('big', 'x'.repeat(512 * 1024)))).toBe('done');
    expect(await read('big', 600 * 1024)).toMatchObject({ size: 512 * 1024, truncated: false });
    expect(await codeOf(write('control', '\u0001'.repeat(512 * 1024)))).toBe('done');
    expect(await read('control', 600 * 1024)).toMatchObject({ encoding: 'base64', truncated: false });
  });

  it('lists sorted, with kinds and sizes, within its bound', async () => {
    await write('dir/z.txt', '123');
    await write('dir/a/x', '');
    symlinkSync('z.txt', inside('dir', 'm'));
    expect(await list('dir')).toEqual({
      op: 'list',
      entries: [
        { name: 'a', kind: 'directory', size: expect.any(Number) },
        { name: 'm', kind: 'link', size: 5 },
        { name: 'z.txt', kind: 'file', size: 3 },
      ],
      truncated: false,
    });
    expect(await list('./dir/', 2)).toMatchObject({ entries: [{ name: 'a' }, { name: 'm' }], truncated: true });
    expect(await list('.')).toMatchObject({ op: 'list' });
  });

  it('tells what is missing, no file and not permitted apart', async () => {
    expect(await codeOf(read('nothing'))).toBe('file_not_found');
    expect(await codeOf(read('dir'))).toBe('not_a_regular_file');
    expect(await codeOf(read('.'))).toBe('not_a_regular_file');
    expect(await codeOf(write('dir', 'x'))).toBe('not_a_regular_file');
    expect(await codeOf(list('nothing'))).toBe('file_not_found');
    writeFileSync(inside('of-root'), 'secret', { mode: 0o600 });
    expect(await codeOf(read('of-root'))).toBe('file_not_permitted');
    chownSync(inside('of-root'), guest.toolUid, guest.helperGid);
    expect(await codeOf(read('of-root'))).toBe('done');
  });
});

describe('BL-100 nothing outside the workspace', () => {
  const outside = (name: string) => join(guest.dir, 'outside', name);
  beforeAll(() => {
    mkdirSync(join(guest.dir, 'outside'));
    chmodSync(join(guest.dir, 'outside'), 0o777);
    writeFileSync(outside('secret'), 'SECRET');
    symlinkSync(outside('secret'), inside('leaf'));
    symlinkSync(outside('new'), inside('dangling'));
    symlinkSync(join(guest.dir, 'outside'), inside('away'));
    symlinkSync('away', inside('chain'));
    symlinkSync('dir', inside('near'));
  });

  it('refuses paths that are not below it', async () => {
    for (const path of ['/etc/passwd', '../outside/secret', 'dir/../../outside/secret', 'a\0b']) {
      expect(await codeOf(read(path))).toBe('path_outside_workspace');
      expect(await codeOf(write(path, 'x'))).toBe('path_outside_workspace');
      expect(await codeOf(list(path))).toBe('path_outside_workspace');
    }
  });

  it('follows no link at the leaf, also a dangling one', async () => {
    expect(await codeOf(read('leaf'))).toBe('not_a_regular_file');
    for (const append of [false, true]) {
      expect(await codeOf(write('leaf', 'x', { append }))).toBe('not_a_regular_file');
      expect(await codeOf(write('dangling', 'x', { append }))).toBe('not_a_regular_file');
    }
    expect(existsSync(outside('new'))).toBe(false);
    expect(readFileSync(outside('secret'), 'utf8')).toBe('SECRET');
  });

  it('follows no link out of it, and makes nothing there', async () => {
    for (const way of ['away', 'chain']) {
      expect(await codeOf(read(`${way}/secret`))).toBe('path_outside_workspace');
      expect(await codeOf(write(`${way}/made/by`, 'x'))).toBe('path_outside_workspace');
      expect(await codeOf(list(way))).toBe('path_outside_workspace');
    }
    expect(readdirSync(join(guest.dir, 'outside'))).toEqual(['secret']);
    // Control: the same operation on a root that holds both is allowed, so it was the check that refused.
    expect(operate(guest.dir, { op: 'read', path: 'workspace/away/secret', maxBytes: 100 })).toMatchObject({ body: 'SECRET' });
  });

  it('follows a link that stays inside', async () => {
    expect(await read('near/z.txt')).toMatchObject({ body: '123' });
  });

  it('is not held up by a FIFO, a socket or a device', async () => {
    const made = await guest.membrane.exec('run_1', {
      argv: ['python3', '-c', "import os,socket; os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket')"],
    });
    expect(made.exec).toMatchObject({ exitCode: 0 });
    for (const path of ['fifo', 'socket']) {
      expect(await codeOf(read(path))).toBe('not_a_regular_file');
      expect(await codeOf(write(path, 'x'))).toBe('not_a_regular_file');
      expect(await codeOf(write(path, 'x', { append: true }))).toBe('not_a_regular_file');
    }
  });

  it('finds nothing outside while a link is swapped under it', async () => {
    mkdirSync(inside('swap'));
    chownSync(inside('swap'), guest.toolUid, guest.helperGid);
    writeFileSync(inside('swap', 'secret'), 'inside');
    chownSync(inside('swap', 'secret'), guest.toolUid, guest.helperGid);
    const swapper = spawn(process.execPath, ['-e', SWAPPER], { cwd: guest.workspace, stdio: 'ignore' });
    try {
      const seen = new Set<string>();
      for (let i = 0; i < 400; i += 1) {
        const [reading, writing] = await Promise.all([
          read('swap/secret').then(
            (result) => (result as { body: string }).body,
            (error) => error.code,
          ),
          codeOf(write(`swap/made-${i % 3}`, 'x')),
        ]);
        seen.add(reading).add(writing);
      }
      expect([...seen]).not.toContain('SECRET');
      expect(readdirSync(join(guest.dir, 'outside'))).toEqual(['secret']);
      // Both sides of the race were met.
      expect([...seen]).toContain('path_outside_workspace');
      expect([...seen]).toContain('done');
    } finally {
      swapper.kill('SIGKILL');
    }
  });

  it('reads a hard link as the file that it is: its owner could as well', async () => {
    linkSync(inside('log'), inside('hard'));
    expect(await codeOf(read('hard'))).toBe('done');
    unlinkSync(inside('hard'));
  });
});

describe('the helper', () => {
  const helper = () => livePids([guest.helperGid]);

  it('runs as the tool uid with a gid of its own, and a tool cannot look into it', async () => {
    await list('.');
    const [pid] = helper();
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(
      new RegExp(`Uid:\t${guest.toolUid}\t.*Gid:\t${guest.helperGid}\t.*CapEff:\t0+\n`, 's'),
    );
    const peek = await guest.membrane.exec('run_1', { argv: ['cat', `/proc/${pid}/environ`] });
    expect(peek.exec).toMatchObject({ stdout: '', exitCode: 1 });
  });

  it('is started again when a tool has killed it', async () => {
    const [pid] = helper();
    expect((await guest.membrane.exec('run_1', { argv: ['sh', '-c', `kill -9 ${pid}`] })).exec).toMatchObject({ exitCode: 0 });
    expect(await read('dir/z.txt')).toMatchObject({ body: '123' });
    expect(helper()).toHaveLength(1);
    expect(helper()).not.toEqual([pid]);
  });

  it('answers many at once, each its own', async () => {
    const bodies = await Promise.all(Array.from({ length: 50 }, (_, i) => write(`many/${i}`, `${i}`).then(() => read(`many/${i}`))));
    expect(bodies.map((result) => (result as { body: string }).body)).toEqual(bodies.map((_, i) => `${i}`));
    renameSync(inside('many'), inside('many-done'));
  });
});

const SWAPPER = `
const fs = require('node:fs');
for (;;) {
  try { fs.renameSync('swap', 'kept'); fs.symlinkSync('../outside', 'swap'); } catch {}
  for (let i = 0; i < 2e5; i += 1);
  try { fs.unlinkSync('swap'); fs.renameSync('kept', 'swap'); } catch {}
  for (let i = 0; i < 2e5; i += 1);
}`;
