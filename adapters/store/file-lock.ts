import { DatabaseSync } from 'node:sqlite';

/** SQLite's result code when another connection holds a lock that excludes ours. */
const SQLITE_BUSY = 5;

/** How long `withFileLock` waits for its turn. Blocks the event loop: only for start-up. */
const TURN_TIMEOUT_MS = 30_000;

/**
 * An exclusive lock on a file that exists for this purpose only; undefined when another process (or another holder in this one) has it.
 * It is a lock of the operating system taken by SQLite, so it ends with the process, whatever ends it: there is nothing stale to clear.
 */
export function tryFileLock(file: string, waitMs = 0): { release(): void } | undefined {
  const database = new DatabaseSync(file, { timeout: waitMs });
  try {
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  return { release: () => database.close() };
}

/** Runs `fn` while no other process runs one under the same file. */
export async function withFileLock<T>(file: string, fn: () => Promise<T>): Promise<T> {
  const lock = tryFileLock(file, TURN_TIMEOUT_MS);
  if (lock === undefined) throw new Error(`Another process holds ${file} for too long`);
  try {
    return await fn();
  } finally {
    lock.release();
  }
}
