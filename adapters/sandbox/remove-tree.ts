import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { SandboxError } from '../../core/errors.ts';

/** Administrators' programs are not on every user's PATH, and unshare(1) needs newuidmap(1). */
const ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/**
 * Removes a directory that may hold workspaces. Those belong to subordinate ids, whose files an ordinary user can remove only as the root of a
 * user namespace that has them; no link is followed and no other file system entered. What is not there is removed already.
 *
 * @throws SandboxError `io_failed` when something is left
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (process.geteuid?.() === 0 || (code !== 'EACCES' && code !== 'EPERM')) {
      throw new SandboxError('io_failed', `${path} could not be removed (${code ?? 'unknown'})`, { cause });
    }
    await removeAsOwner(path);
  }
}

function removeAsOwner(path: string): Promise<void> {
  const args = ['--user', '--map-root-user', '--map-auto', '--', 'rm', '--recursive', '--force', '--one-file-system', '--', path];
  return new Promise((resolve, reject) => {
    execFile('unshare', args, { env: ENV }, (cause, _stdout, stderr) => {
      if (cause === null) resolve();
      else reject(new SandboxError('io_failed', `${path} could not be removed: ${stderr.trim().split('\n').at(-1) ?? ''}`, { cause }));
    });
  });
}
