import { StoreError } from '../../../core/errors.ts';

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html); the low byte of an extended code. */
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_CONSTRAINT = 19;

/** The store's own error for what SQLite reports; any other error is passed on as it is. */
export function storeErrorOf(error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === undefined) return error;
  switch (code & 0xff) {
    case SQLITE_FULL:
      return new StoreError('disk_full', 'The disk is full; nothing was written', { cause: error, retryable: true });
    case SQLITE_CONSTRAINT:
      return new StoreError('conflict', 'Such a row exists already', { cause: error });
    case SQLITE_BUSY:
      return new StoreError('store_unavailable', 'Another process holds the database', { cause: error, retryable: true });
    default:
      return new StoreError('store_unavailable', 'The database cannot be read or written', { cause: error });
  }
}

/** The result code, also when the ORM wrapped the error. */
function sqliteCode(error: unknown): number | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause ?? (at as { previous?: unknown }).previous, depth += 1) {
    if ('errcode' in at && typeof at.errcode === 'number') return at.errcode;
  }
  return undefined;
}
