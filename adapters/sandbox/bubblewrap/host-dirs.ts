import { chmod, lstat, mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { PrerequisiteError, SandboxError } from '../../../core/errors.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { Slice } from '../slices.ts';
import { giveTo } from './ownership.ts';

/**
 * Makes a workspace or HOME root once and gives it to the tool uid; from then on the kernel opens nothing there, and its owner may set its
 * mode. Nobody but the kernel writes the parent, which the slice's ids may enter and not list.
 *
 * @throws SandboxError `start_failed`
 */
export async function prepareRoot(path: string, owner: Slice): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await chmod(dirname(path), 0o711);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const found = await lstat(path);
  if (!found.isDirectory()) throw new SandboxError('start_failed', `${path} is not a directory`);
  // A tool may have locked its user out of the root itself; no command could mend that from inside.
  const usable = found.uid === owner.toolUid && (found.mode & 0o700) === 0o700;
  if (!usable) await giveTo(path, { uid: owner.toolUid, gid: owner.toolGid, mode: 0o755 });
}

/**
 * Makes the directory of one generation's membrane socket: the slice's first group may enter it and nothing more.
 *
 * @throws PrerequisiteError `state_directory_unusable`: too long for a socket; SandboxError `start_failed`: not directly below `socketsDir`, or
 * used before
 */
export async function prepareSockets(socketsDir: string, socketDir: string, owner: Slice): Promise<void> {
  if (dirname(resolve(socketDir)) !== socketsDir) {
    throw new SandboxError('start_failed', `a socket directory must lie directly in ${socketsDir}`);
  }
  const longest = Buffer.byteLength(join(socketDir, 'membrane.sock'));
  if (longest > SAFETY.socketPathBytes) {
    throw new PrerequisiteError('state_directory_unusable', `the socket path has ${longest} bytes; at most ${SAFETY.socketPathBytes} fit`, {
      hint: 'choose a shorter state directory',
    });
  }
  await mkdir(socketsDir, { recursive: true, mode: 0o700 });
  await mkdir(socketDir, { mode: 0o700 }).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'EEXIST' ? 'a generation is never used twice' : `the directory of its socket cannot be made (${cause.code})`;
    throw new SandboxError('start_failed', why, { cause });
  });
  await giveTo(socketDir, { gid: owner.executorGid, mode: 0o710 });
}
