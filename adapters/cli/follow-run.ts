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
}

/**
 * Reads the event log until the run has ended (or parked), and gives the run as it is then. On an error `position()` tells where to go on,
 * so that a follower outlives the kernel it was connected to.
 */
export function followRun(
  operations: KernelOperations,
  run: string,
  options: FollowOptions,
): { readonly done: Promise<Run>; position(): number } {
  let cursor = options.from;
  const follow = async (): Promise<Run> => {
    for (;;) {
      // The state first, then the events: all events of the state that ends the loop are then still printed.
      const { run: now } = await operations.showRun(run);
      // Unfiltered: waiting is by the log's own head, and a filtered cursor would lag behind it and never wait.
      for (;;) {
        const events = await operations.events(cursor, {}, BATCH);
        for (const event of events) {
          cursor = event.cursor;
          if (event.run === run) options.onEvent(event);
        }
        if (events.length < BATCH) break;
      }
      if (isTerminal(now.state) || (now.state === 'parked' && !options.throughGates)) return now;
      await operations.eventsChanged(cursor, WAIT_MS);
    }
  };
  return { done: follow(), position: () => cursor };
}
