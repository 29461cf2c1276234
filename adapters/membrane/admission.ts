import type { Clock } from '../../core/seams/clock.ts';

interface Waiter {
  readonly cost: number;
  readonly run: () => void;
}

/**
 * Token bucket of one sandbox socket. What it cannot pay for now waits in order and runs when the bucket has refilled: nothing is
 * answered meanwhile, so a sandbox that floods slows itself and nobody else. The queue is bounded by the socket's connections.
 */
export class Admission {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  readonly #waiting = new Set<Waiter>();
  #level: number;
  #atMs: number;
  #cancelTimer: (() => void) | undefined;

  constructor(options: { readonly clock: Clock; readonly perSecond: number; readonly burst: number }) {
    this.#clock = options.clock;
    this.#perMs = options.perSecond / 1000;
    this.#burst = options.burst;
    this.#level = options.burst;
    this.#atMs = options.clock.now();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs `run` now, or when `cost` can be paid. @returns a function that gives the place in the queue up. */
  enter(cost: number, run: () => void): () => void {
    this.#refill();
    if (this.#waiting.size === 0 && this.#pay(cost)) {
      run();
      return () => undefined;
    }
    const waiter: Waiter = { cost, run };
    this.#waiting.add(waiter);
    this.#schedule();
    return () => {
      this.#waiting.delete(waiter);
    };
  }

  /** Takes `cost` afterwards, into debt if need be: for what shows only later, a failed token or the size of a chunked body. */
  charge(cost: number): void {
    this.#refill();
    this.#level -= cost;
  }

  /** Drops whoever waits; their connections are being closed. */
  close(): void {
    this.#waiting.clear();
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #pay(cost: number): boolean {
    // A cost above the burst could never be saved up: a full bucket pays for it, in debt.
    if (this.#level < Math.min(cost, this.#burst)) return false;
    this.#level -= cost;
    return true;
  }

  #refill(): void {
    const nowMs = this.#clock.now();
    // A clock set back refills nothing.
    this.#level = Math.min(this.#burst, this.#level + Math.max(0, nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
  }

  #schedule(): void {
    if (this.#cancelTimer !== undefined) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    const missing = Math.min(next.cost, this.#burst) - this.#level;
    this.#cancelTimer = this.#clock.after(Math.max(1, Math.ceil(missing / this.#perMs)), () => {
      this.#cancelTimer = undefined;
      this.#admitWaiting();
    });
  }

  #admitWaiting(): void {
    this.#refill();
    for (const waiter of this.#waiting) {
      if (!this.#pay(waiter.cost)) break;
      this.#waiting.delete(waiter);
      waiter.run();
    }
    this.#schedule();
  }
}
