import type { Retention } from '../config.ts';
import type { PruneCounts, RetentionStore } from '../ports/retention-store.ts';
import type { EventStore } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';
import { pause } from './pause.ts';

export interface PruneDeps {
  readonly store: { readonly retention: RetentionStore; readonly events: Pick<EventStore, 'append'> };
  readonly clock: Clock;
  readonly retention: Retention;
  readonly onError: (error: unknown, run: string | undefined) => void;
}

const DAY_MS = 24 * 60 * 60_000;
/** A kernel that starts has better things to do. */
const FIRST_MS = 60_000;
/** From the end of one pass to the next. */
const EVERY_MS = 60 * 60_000;
/** Rows of one transaction (500 hold the database for 12 ms, on two busy cores), and what is left to others between two. */
const BATCH = 500;
const PAUSE_MS = 100;

/** Removes what is kept no longer, pass after pass, in small transactions. A pass that removed something is an event with its counts. */
export class Pruner implements AsyncDisposable {
  readonly #deps: PruneDeps;
  readonly #closing = new AbortController();
  #working: Promise<void> | undefined;

  constructor(deps: PruneDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#working ??= this.#work();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let ms = FIRST_MS; await this.#waited(ms); ms = EVERY_MS) {
      await this.#pass().catch((error) => this.#deps.onError(error, undefined));
    }
  }

  async #pass(): Promise<void> {
    const { store, clock, retention } = this.#deps;
    const nowMs = clock.now();
    const before = {
      decisionsBeforeMs: nowMs - retention.decisionDays * DAY_MS,
      threadsBeforeMs: nowMs - retention.threadDays * DAY_MS,
    };
    const total = new Map<string, number>();
    let from: number | undefined;
    try {
      do {
        const { counts, next } = await store.retention.prune(before, BATCH, from);
        add(total, counts);
        from = next;
      } while (from !== undefined && (await this.#waited(PAUSE_MS)));
    } finally {
      if ([...total.values()].some((count) => count > 0)) {
        await store.events.append({ type: 'store.pruned', data: Object.fromEntries(total) }, clock.now());
      }
    }
  }

  /** @returns false when the kernel closes */
  async #waited(ms: number): Promise<boolean> {
    const { signal } = this.#closing;
    await pause(this.#deps.clock, ms, signal);
    return !signal.aborted;
  }
}

function add(total: Map<string, number>, counts: PruneCounts): void {
  for (const [kind, count] of Object.entries(counts)) total.set(kind, (total.get(kind) ?? 0) + count);
}
