import { StoreError } from '../../../core/errors.ts';
import { SQLITE_FULL } from '../../no-room.ts';

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html); the low byte of an extended code. */
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_CONSTRAINT = 19;
const SQLITE_NOTADB = 26;

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
    case SQLITE_CORRUPT:
      return damaged(undefined, error);
    case SQLITE_NOTADB:
      return damaged('the file is no database', error);
    default:
      return new StoreError('store_unavailable', 'The database cannot be read or written', { cause: error });
  }
}

/** @param why - what SQLite found, where it says more than that it found something */
export function damaged(why: string | undefined, cause?: unknown): StoreError {
  const detail = why === undefined ? '' : `: ${why}`;
  return new StoreError('store_damaged', `The database is damaged${detail}`, {
    hint: 'bring outwork.db back from a copy, or name another state directory with --state DIR',
    cause,
  });
}

/** The result code, also when the ORM wrapped the error. */
function sqliteCode(error: unknown): number | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause ?? (at as { previous?: unknown }).previous, depth += 1) {
    if ('errcode' in at && typeof at.errcode === 'number') return at.errcode;
  }
  return undefined;
}
