import { OutworkError, StoreError } from '../core/errors.ts';

/** Bytes, inodes or a quota. */
const CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);
/** What SQLite calls it (https://www.sqlite.org/rescode.html). */
export const SQLITE_FULL = 13;

/** What a person can do about it. */
export const MAKE_ROOM = 'free some room there, in bytes and inodes';

/** Whether something failed because its file system is full: the error itself, or what caused it. */
export function lacksRoom(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const { code, errcode } = at as { code?: unknown; errcode?: unknown };
    if (CODES.has(code) || errcode === SQLITE_FULL) return true;
  }
  return false;
}

/** What a full file system is called where nothing closer to it has named it; any other error as it is. */
export function diskFullError(error: unknown): unknown {
  if (error instanceof OutworkError || !lacksRoom(error)) return error;
  return new StoreError('disk_full', `The disk is full: ${(error as Error).message}`, {
    cause: error,
    retryable: true,
    hint: MAKE_ROOM,
  });
}
