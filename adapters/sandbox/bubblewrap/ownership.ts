import { execFile } from 'node:child_process';
import { chmod, chown, lstat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { SandboxError } from '../../../core/errors.ts';
import { HOST_ENV } from './host-env.ts';

const run = promisify(execFile);

export interface Owned {
  /** Host uid; undefined leaves the kernel's own. */
  readonly uid?: number;
  readonly gid: number;
  readonly mode: number;
}

/**
 * Gives a path that the kernel itself made, and whose parents it alone can write, to ids of a slice. Root changes the owner directly; an
 * ordinary user does it in a user namespace of one short command which maps exactly the ids needed. Does nothing when all is so already.
 *
 * @throws SandboxError `start_failed`
 */
export async function giveTo(path: string, owned: Owned): Promise<void> {
  const before = await lstat(path);
  const uid = owned.uid ?? before.uid;
  if (before.uid === uid && before.gid === owned.gid && (before.mode & 0o7777) === owned.mode) return;
  const self = process.getuid?.() ?? 0;
  try {
    if (before.uid === self) await chmod(path, owned.mode);
    if (self === 0) await chown(path, uid, owned.gid);
    else await run('unshare', chownCommand(path, owned), { env: HOST_ENV, cwd: '/' });
  } catch (cause) {
    throw new SandboxError('start_failed', `cannot give ${path} to the sandbox's ids`, { cause });
  }
}

/** Inside the helper's namespace 0 is the kernel's user (who owns the path) and 1 is who gets it. */
function chownCommand(path: string, owned: Owned): string[] {
  const users = owned.uid === undefined ? [] : [`--map-users=${owned.uid},1,1`];
  const change = owned.uid === undefined ? ['chgrp', '--no-dereference', '1'] : ['chown', '--no-dereference', '1:1'];
  return ['--map-root-user', ...users, `--map-groups=${owned.gid},1,1`, ...change, '--', path];
}
