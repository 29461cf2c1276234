import { execFile } from 'node:child_process';
import { chmod, chown, lstat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { SandboxError } from '../../../core/errors.ts';
import { HOST_ENV } from '../host-env.ts';

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
    if (before.uid === self || self === 0) await chmod(path, owned.mode);
    if (self === 0) await chown(path, uid, owned.gid);
    else await run('unshare', handOver(path, owned), { env: HOST_ENV, cwd: '/' });
  } catch (cause) {
    throw new SandboxError('start_failed', `cannot give ${path} to the sandbox's ids`, { cause });
  }
}

const HAND_OVER = 'chown -h "$1" -- "$3" && chmod "$2" -- "$3"';

/** Inside the helper's namespace 0 is the kernel's user and 1 is who gets the path, or has it already. */
function handOver(path: string, { uid, gid, mode }: Owned): string[] {
  const users = uid === undefined ? [] : [`--map-users=${uid},1,1`];
  const command = ['sh', '-c', HAND_OVER, 'sh', uid === undefined ? ':1' : '1:1', mode.toString(8), path];
  return ['--map-root-user', ...users, `--map-groups=${gid},1,1`, ...command];
}
