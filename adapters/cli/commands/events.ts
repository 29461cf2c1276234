import { setTimeout as sleep } from 'node:timers/promises';
import type { KernelEvent } from '../../../core/events.ts';
import type { EventFilter } from '../../../core/ports/store.ts';
import { isUnreachable } from '../../api/operator-client.ts';
import { type CommandContext, configOf } from '../context.ts';
import { eventLine } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import { mayBeRunning, openSession } from '../with-kernel.ts';

export interface EventsOptions {
  readonly tenant?: string;
  readonly thread?: string;
  readonly run?: string;
  readonly from: number;
  /** False: print what is there and end. */
  readonly follow: boolean;
}

const BATCH = 500;
const WAIT_MS = 10_000;
const POLL_MS = 250;

/**
 * Prints events from a cursor on, one a line, and goes on with new ones until it is interrupted or its reader goes. When no kernel runs
 * nothing new can happen: it then lets go of the state directory, and goes on when a kernel appears.
 */
export async function eventsTail(context: CommandContext, options: EventsOptions): Promise<number> {
  const { io, out } = context;
  const config = configOf(context);
  const interrupt = new AbortController();
  const stopListening = io.onInterrupt(() => interrupt.abort());
  const over = () => out.closed || interrupt.signal.aborted;
  let cursor = options.from;
  try {
    for (;;) {
      await using session = await openSession(config, { execute: false, createKernel: io.createKernel });
      try {
        do {
          cursor = await printNew(context, session.operations, cursor, options, over);
          if (over() || !options.follow) break;
          if (!session.own) await Promise.race([session.operations.eventsChanged(cursor, WAIT_MS), aborted(interrupt.signal)]);
        } while (!session.own && !over());
      } catch (error) {
        if (session.own || !isUnreachable(error)) throw error;
      }
      await session.close();
      if (!options.follow || over()) break;
      while (!over() && !mayBeRunning(config)) await sleep(POLL_MS, undefined, { signal: interrupt.signal }).catch(() => undefined);
      if (over()) break;
    }
  } finally {
    stopListening();
  }
  return interrupt.signal.aborted ? EXIT.interrupted : EXIT.good;
}

async function printNew(
  { out }: CommandContext,
  operations: { events(from: number, filter: EventFilter, limit: number): Promise<readonly KernelEvent[]> },
  from: number,
  { tenant, thread, run }: EventsOptions,
  over: () => boolean,
): Promise<number> {
  let cursor = from;
  for (;;) {
    // Unfiltered, as in `followRun`: the cursor has to reach the log's head, or waiting for what is newer would not wait.
    const events = await operations.events(cursor, {}, BATCH);
    for (const event of events) {
      cursor = event.cursor;
      const wanted = [
        [tenant, event.tenant],
        [thread, event.thread],
        [run, event.run],
      ].every(([want, is]) => want === undefined || want === is);
      if (!wanted || over()) continue;
      if (out.json) out.record(event);
      else out.line({ text: `${event.cursor} `, style: 'dim' }, ...eventLine(event, { withRun: true }));
    }
    if (events.length < BATCH || over()) return cursor;
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
