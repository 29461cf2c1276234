import { StoreError } from '../errors.ts';
import type { Clock } from '../seams/clock.ts';
import { pause } from './pause.ts';

/** Pauses between two tries of one write: the first, and the longest after doubling. */
const FIRST_MS = 100;
const LONGEST_MS = 2000;

/** The store can write nothing now and may again later: the disk is full, or another process holds the database. */
export const isStoreFull = (error: unknown): error is StoreError => error instanceof StoreError && error.retryable;

/**
 * Writes down what has happened. While the store can take nothing it is kept in memory and tried again, after 100 ms, 200 ms and so on up
 * to every 2 s: that a disk is full makes nothing that was done undone.
 *
 * @param until - ends the waiting; what the store said last is thrown then
 */
export async function untilStored<T>(clock: Clock, until: AbortSignal, write: () => Promise<T>): Promise<T> {
  for (let pauseMs = FIRST_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_MS)) {
    try {
      return await write();
    } catch (error) {
      if (!isStoreFull(error) || until.aborted) throw error;
    }
    await pause(clock, pauseMs, until);
  }
}
