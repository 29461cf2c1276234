import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApprovedFiles } from '../../../harnesses/guest/approved-files.ts';

const digest = (text: string) => createHash('sha256').update(text).digest('hex');
const fileOf = (text: string, name = 'x.sh', sha256 = digest(text)) =>
  ({ op: 'place', sha256, name, body: Buffer.from(text).toString('base64') }) as const;

let dir: string;
let files: ApprovedFiles;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'approved-')));
  chmodSync(dir, 0o755);
  files = new ApprovedFiles(dir);
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Runs shell text as a user who is not the owner, as a tool is. */
const asTool = (text: string): number => {
  try {
    execFileSync('sh', ['-c', text], { uid: 65_534, gid: 65_534, cwd: '/', stdio: 'ignore' });
    return 0;
  } catch (error) {
    return (error as { status: number }).status;
  }
};

describe('approved files in the sandbox', () => {
  it('lie below their digest, under their own name, to be read and run by everybody', () => {
    expect(files.place(fileOf('#!/bin/sh\nexit 7\n'))).toEqual({ op: 'write', size: 17 });
    const path = join(dir, digest('#!/bin/sh\nexit 7\n'), 'x.sh');
    expect(readFileSync(path, 'utf8')).toBe('#!/bin/sh\nexit 7\n');
    expect(statSync(path).mode & 0o777).toBe(0o555);
    expect(asTool(path)).toBe(7);
    expect(readdirSync(join(dir, digest('#!/bin/sh\nexit 7\n')))).toEqual(['x.sh']);
  });

  it('cannot be written, replaced, removed or added to by a tool', () => {
    files.place(fileOf('one'));
    const path = join(dir, digest('one'), 'x.sh');
    for (const attack of [
      `echo two > ${path}`,
      `rm -f ${path}`,
      `mv ${path} ${path}.old`,
      `chmod 777 ${path}`,
      `echo two > ${join(dir, digest('one'), 'y.sh')}`,
      `mkdir ${join(dir, digest('two'))}`,
      `ln -s /etc/passwd ${join(dir, digest('two'))}`,
    ]) {
      expect(asTool(attack), attack).not.toBe(0);
    }
    expect(readFileSync(path, 'utf8')).toBe('one');
    // Control: where a tool may write, the same commands work.
    chmodSync(join(dir, digest('one')), 0o777);
    expect(asTool(`rm -f ${path}`)).toBe(0);
  });

  it.each([
    ['other bytes than its digest says', fileOf('one', 'x.sh', digest('two')), 'invalid_arguments'],
    ['a digest that is a path', fileOf('one', 'x.sh', '../../../../etc'), 'invalid_arguments'],
    ['a name that is a path', fileOf('one', '../x.sh'), 'invalid_arguments'],
    ['a name that is a directory', fileOf('one', '..'), 'invalid_arguments'],
    ['a name with a NUL', fileOf('one', 'a\0b'), 'invalid_arguments'],
    ['a file that is too large', fileOf('x'.repeat(512 * 1024 + 1)), 'file_too_large'],
  ])('refuses %s', (_, file, code) => {
    expect(() => files.place(file)).toThrowError(expect.objectContaining({ code }));
    expect(readdirSync(dir)).toEqual([]);
  });

  it('the same file twice is one, and of many the oldest go', () => {
    files.place(fileOf('same'));
    files.place(fileOf('same'));
    expect(readdirSync(dir)).toHaveLength(1);
    for (let n = 0; n < 40; n += 1) {
      files.place(fileOf(`file ${n}`));
      utimesSync(join(dir, digest(`file ${n}`)), 1000 + n, 1000 + n);
    }
    expect(readdirSync(dir).sort()).toEqual([...Array.from({ length: 23 }, (_, n) => digest(`file ${17 + n}`)), digest('same')].sort());
  });
});
