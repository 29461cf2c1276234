import { OutworkError, StoreError } from '../core/errors.ts';

/** Bytes, inodes or a quota. */
const CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** Whether something failed because its file system is full: the error itself, or what caused it. */
export function lacksRoom(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    if (CODES.has((at as NodeJS.ErrnoException).code)) return true;
  }
  return false;
}

/** What a full file system is called where nothing closer to it has named it; any other error as it is. */
export function diskFullError(error: unknown): unknown {
  if (error instanceof OutworkError || !lacksRoom(error)) return error;
  return new StoreError('disk_full', `The disk is full: ${(error as Error).message}`, {
    cause: error,
    retryable: true,
    hint: 'free some room, in bytes and inodes, where the state directory is',
  });
}
