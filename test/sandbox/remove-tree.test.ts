import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kernelUsers } from '../support/sandbox-client.ts';

const MODULE = new URL('../../adapters/sandbox/remove-tree.ts', import.meta.url).href;
const ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-remove-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe.each(kernelUsers())('a tree with files of subordinate ids, as $name', (user) => {
  const gid = Number(execFileSync('id', ['-g', user.name], { encoding: 'utf8' }));
  const as = (command: string, args: readonly string[]) =>
    spawnSync(command, args, { encoding: 'utf8', env: ENV, ...(user.uid === process.getuid?.() ? {} : { uid: user.uid, gid }) });
  const remove = (path: string) =>
    as(process.execPath, ['--input-type=module', '-e', 'await (await import(process.argv[1])).removeTree(process.argv[2])', MODULE, path]);

  beforeEach(() => {
    chownSync(dir, user.uid, gid);
    const script =
      'mkdir -p "$1/state/work/deep" && echo x > "$1/state/work/deep/file" && ln -s "$1/kept" "$1/state/work/link" && chown -R 5:5 "$1/state/work" && chmod 700 "$1/state/work"';
    const made = as('unshare', ['--user', '--map-root-user', '--map-auto', 'sh', '-c', script, 'sh', dir]);
    expect(made.status, made.stderr).toBe(0);
    as('mkdir', [join(dir, 'kept')]);
    as('touch', [join(dir, 'kept', 'file')]);
  });

  it('is removed whole, what its links point to is not, and a second time is nothing to do', () => {
    const { status, stderr } = remove(join(dir, 'state'));
    expect(status, stderr).toBe(0);
    expect(existsSync(join(dir, 'state'))).toBe(false);
    expect(existsSync(join(dir, 'kept', 'file'))).toBe(true);
    expect(remove(join(dir, 'state')).status).toBe(0);
  });

  it('control: an ordinary user cannot remove it by name', () => {
    expect(as('rm', ['-rf', join(dir, 'state')]).status).toBe(user.uid === 0 ? 0 : 1);
  });
});
