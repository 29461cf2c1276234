import type { Retention } from '../config.ts';
import type { PruneCounts, RetentionStore } from '../ports/retention-store.ts';
import type { EventStore } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';

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
  #passing: Promise<void> | undefined;
  #cancel = (): void => {};
  #started = false;
  #closed = false;

  constructor(deps: PruneDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#after(FIRST_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#passing;
  }

  #after(ms: number): void {
    if (this.#closed) return;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#passing = this.#pass()
        .catch((error) => this.#deps.onError(error, undefined))
        .finally(() => this.#after(EVERY_MS));
    });
  }

  async #pass(): Promise<void> {
    const { store, clock, retention } = this.#deps;
    const nowMs = clock.now();
    const before = {
      decisionsBeforeMs: nowMs - retention.decisionDays * DAY_MS,
      threadsBeforeMs: nowMs - retention.threadDays * DAY_MS,
    };
    const total = new Map<string, number>();
    try {
      for (let from: number | undefined; !this.#closed; ) {
        const { counts, next } = await store.retention.prune(before, BATCH, from);
        add(total, counts);
        if (next === undefined) break;
        from = next;
        await this.#pause();
      }
    } finally {
      if ([...total.values()].some((count) => count > 0)) {
        await store.events.append({ type: 'store.pruned', data: Object.fromEntries(total) }, clock.now());
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#deps.clock.after(PAUSE_MS, resolve);
      this.#cancel = () => {
        stop();
        resolve();
      };
    });
  }
}

function add(total: Map<string, number>, counts: PruneCounts): void {
  for (const [kind, count] of Object.entries(counts)) total.set(kind, (total.get(kind) ?? 0) + count);
}
