import { setTimeout as sleep } from 'node:timers/promises';
import type { CompiledConfig } from '../../../core/config.ts';
import type { KernelOperations } from '../../../core/kernel.ts';
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
 * no run moves: it then lets go of the state directory, and goes on when a kernel appears (what short commands did meanwhile comes then).
 */
export async function eventsTail(context: CommandContext, options: EventsOptions): Promise<number> {
  const { io, out } = context;
  const config = configOf(context);
  const interrupt = new AbortController();
  const stopListening = io.onInterrupt(() => interrupt.abort());
  const over = () => out.closed || interrupt.signal.aborted;
  let cursor = options.from;
  try {
    while (!over()) {
      const drained = await tailSession(context, config, interrupt.signal, async (operations) => {
        cursor = await printNew(context, operations, cursor, options, over);
        return { cursor, enough: over() || !options.follow };
      });
      if (!options.follow) break;
      // A kernel that went away left rows that only its successor, or we, can read; after our own look there is nothing new.
      while (drained && !over() && !mayBeRunning(config))
        await sleep(POLL_MS, undefined, { signal: interrupt.signal }).catch(() => undefined);
    }
  } finally {
    stopListening();
  }
  return interrupt.signal.aborted ? EXIT.interrupted : EXIT.good;
}

/**
 * Looks once at a kernel of our own, or again and again at the one that runs, until `look` says that it is enough.
 * @returns whether everything there is was seen; false when the running kernel went away
 */
async function tailSession(
  { io }: CommandContext,
  config: CompiledConfig,
  signal: AbortSignal,
  look: (operations: KernelOperations) => Promise<{ readonly cursor: number; readonly enough: boolean }>,
): Promise<boolean> {
  await using session = await openSession(config, { execute: false, openRows: io.openRows });
  try {
    for (;;) {
      const { cursor, enough } = await look(session.operations);
      if (enough || session.own) return true;
      await Promise.race([session.operations.eventsChanged(cursor, WAIT_MS), aborted(signal)]);
    }
  } catch (error) {
    if (session.own || !isUnreachable(error)) throw error;
    return false;
  }
}

async function printNew(
  { out }: CommandContext,
  operations: KernelOperations,
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
      else {
        const position = `${event.cursor} `;
        out.line({ text: position, style: 'dim' }, ...eventLine(event, { withRun: true, columns: out.columns - position.length }));
      }
    }
    if (events.length < BATCH || over()) return cursor;
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
