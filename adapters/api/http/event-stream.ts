import type { ServerResponse } from 'node:http';
import type { KernelEvent } from '../../../core/events.ts';
import type { KernelOperations } from '../../../core/kernel.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { Clock } from '../../../core/seams/clock.ts';

export interface EventStream {
  readonly kernel: Pick<KernelOperations, 'events' | 'eventsChanged'>;
  readonly clock: Clock;
  /** Events after this cursor. */
  readonly from: number;
  readonly wanted: (event: KernelEvent) => Promise<boolean>;
  /** Asked now and then: whether the reader's token still counts. */
  readonly allowed: () => Promise<boolean>;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

const BATCH = 50;
/** How long one wait for news is at most: so long a stream that ended keeps a waiter. */
const WAIT_MS = 5000;

/**
 * Writes events as server-sent events until the reader goes, its token ends or the signal says so. What is not taken is not read: a reader
 * behind whom `SAFETY.apiStreamBytes` wait is waited for, and one that takes nothing for `SAFETY.apiStreamStallMs` is cut off.
 */
export async function streamEvents(response: ServerResponse, stream: EventStream): Promise<void> {
  const { kernel, clock, wanted, allowed, signal } = stream;
  const over = () => signal.aborted || response.destroyed;
  let cursor = stream.from;
  let spokeAtMs = clock.now();
  // A comment at once: the reader learns that the stream stands before anything happens.
  if (!(await write(response, clock, signal, `retry: 2000\nid: ${cursor}\n\n`))) return;
  while (!over()) {
    const events = await kernel.events(cursor, {}, BATCH);
    let text = '';
    let usersChanged = false;
    for (const event of events) {
      cursor = event.cursor;
      usersChanged ||= event.type.startsWith('user.');
      if (await wanted(event)) text += frame(event);
      if (text.length < SAFETY.apiStreamBytes) continue;
      if (!(await write(response, clock, signal, text))) return;
      text = '';
    }
    // A heartbeat carries the cursor: a reader whose own events are few goes on from where the log is, not from its last one.
    const silentMs = clock.now() - spokeAtMs;
    const beat = text === '' && silentMs >= SAFETY.apiHeartbeatMs;
    if ((usersChanged || silentMs >= SAFETY.apiHeartbeatMs) && !(await allowed())) break;
    if (text !== '' || beat) {
      spokeAtMs = clock.now();
      if (!(await write(response, clock, signal, beat ? `: still here\nid: ${cursor}\n\n` : text))) return;
    }
    if (events.length < BATCH && !over()) await kernel.eventsChanged(cursor, WAIT_MS);
  }
  response.end();
}

const frame = (event: KernelEvent): string => `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** Writes and, when more waits than the reader takes, waits for it. @returns false when the reader is gone or was cut off */
async function write(response: ServerResponse, clock: Clock, signal: AbortSignal, text: string): Promise<boolean> {
  if (response.destroyed) return false;
  response.write(text);
  if (response.writableLength <= SAFETY.apiStreamBytes) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const taken = () => resolve(true);
  const gone = () => resolve(false);
  const stop = clock.after(SAFETY.apiStreamStallMs, gone);
  response.once('drain', taken).once('close', gone);
  signal.addEventListener('abort', gone, { once: true });
  const drained = await promise;
  stop();
  response.off('drain', taken).off('close', gone);
  signal.removeEventListener('abort', gone);
  // Not `end`: it would wait for the very bytes that nobody takes.
  if (!drained) response.destroy();
  return drained;
}
