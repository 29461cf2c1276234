import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PrerequisiteError, StoreError } from '../../core/errors.ts';
import { ensureStateDir } from '../config/state-dir.ts';
import { holderFile, holderOf } from '../config/state-holder.ts';
import { lacksRoom, MAKE_ROOM } from '../no-room.ts';
import { tryFileLock } from './file-lock.ts';

export interface StateLock {
  /** Lets another kernel own the directory. Closing twice does nothing. */
  release(): Promise<void>;
}

/**
 * One kernel owns one state directory: makes the directory (0700) when it is missing, checks that nobody else may enter it, and takes its
 * lock, which ends with this process even when it is killed.
 *
 * @throws PrerequisiteError `state_directory_unusable`; StoreError `state_locked`, naming the holder's process id
 */
export async function lockStateDir(dir: string): Promise<StateLock> {
  ensureStateDir(dir);
  const lock = tryLock(join(dir, 'kernel.lock'));
  if (lock === undefined) {
    const { process: holder, hint } = holderOf(dir);
    throw new StoreError('state_locked', `${dir} is owned by a running kernel, ${holder}`, { hint });
  }
  try {
    await writeFile(holderFile(dir), `${process.pid}\n`, { mode: 0o600 });
  } catch (cause) {
    lock.release();
    throw unusable(`${dir} cannot be written`, cause);
  }
  let held = true;
  return {
    async release() {
      if (held) lock.release();
      held = false;
    },
  };
}

function tryLock(file: string): ReturnType<typeof tryFileLock> {
  try {
    return tryFileLock(file);
  } catch (cause) {
    throw unusable(`${file} cannot be locked`, cause);
  }
}

/** What the system says of it, and the cure where that is room. */
function unusable(what: string, cause: unknown): PrerequisiteError {
  const { message } = cause as { message: string };
  return new PrerequisiteError('state_directory_unusable', `${what}: ${message}`, { cause, ...(lacksRoom(cause) && { hint: MAKE_ROOM }) });
}
