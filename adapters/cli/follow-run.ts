import type { KernelEvent } from '../../core/events.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { isTerminal, type Run } from '../../core/run/types.ts';

const BATCH = 200;
const WAIT_MS = 5_000;

export interface FollowOptions {
  /** Keep following a parked run until it ends. */
  readonly throughGates: boolean;
  /** Cursor before the first event of interest. */
  readonly from: number;
  readonly onEvent: (event: KernelEvent) => void;
  /** Told how far the log was read, so that a follower can go on with another kernel. */
  readonly onPosition: (cursor: number) => void;
}

/** Reads the event log until the run has ended (or parked), and gives the run as it is then. */
export async function followRun(operations: KernelOperations, run: string, options: FollowOptions): Promise<Run> {
  let cursor = options.from;
  for (;;) {
    // The state first, then the events: all events up to the state that ends the loop are then printed.
    const { run: now } = await operations.showRun(run);
    let moved = false;
    // Unfiltered: waiting is by the log's own head, and a filtered cursor would lag behind it and never wait.
    for (;;) {
      const events = await operations.events(cursor, {}, BATCH);
      for (const event of events) {
        cursor = event.cursor;
        options.onPosition(cursor);
        if (event.run !== run) continue;
        moved = true;
        options.onEvent(event);
      }
      if (events.length < BATCH) break;
    }
    if (isTerminal(now.state) || (now.state === 'parked' && !options.throughGates)) return now;
    // What moved since the state was read may have been its end, and then nothing newer comes.
    if (!moved) await operations.eventsChanged(cursor, WAIT_MS);
  }
}
