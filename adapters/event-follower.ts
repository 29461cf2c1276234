import type { KernelEvent } from '../core/events.ts';
import type { EventStore } from '../core/ports/store.ts';
import { pause } from '../core/run/pause.ts';
import type { Clock } from '../core/seams/clock.ts';

export interface EventFollowerDeps {
  readonly events: EventStore;
  readonly clock: Clock;
  /** Gets every event newer than the start, once and in order. */
  readonly onEvent: (event: KernelEvent) => void;
  readonly onError: (error: unknown) => void;
}

const BATCH = 200;
/** From a read that failed to the next one. */
const AGAIN_MS = 5000;

/** Reads the log as it grows and hands each event on: how metrics and the log learn what happens, without a word in the code that does it. */
export class EventFollower {
  readonly #deps: EventFollowerDeps;
  readonly #closing = new AbortController();
  #cursor = 0;
  #loop: Promise<void> | undefined;

  constructor(deps: EventFollowerDeps) {
    this.#deps = deps;
  }

  /** Follows what comes after the newest event there is now. */
  async start(): Promise<void> {
    this.#cursor = (await this.#deps.events.last())?.cursor ?? 0;
    this.#loop = this.#follow();
  }

  /** Hands on what is there and ends. Call it before the store is closed. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
  }

  async #follow(): Promise<void> {
    const { events, clock, onError } = this.#deps;
    const { signal } = this.#closing;
    for (let last = false; !last; ) {
      last = signal.aborted;
      try {
        await this.#drain();
        if (!last) await events.changed(this.#cursor, signal);
      } catch (error) {
        onError(error);
        if (!last) await pause(clock, AGAIN_MS, signal);
      }
    }
  }

  async #drain(): Promise<void> {
    for (;;) {
      const events = await this.#deps.events.read(this.#cursor, {}, BATCH);
      for (const event of events) {
        this.#cursor = event.cursor;
        this.#deps.onEvent(event);
      }
      if (events.length < BATCH) return;
    }
  }
}
