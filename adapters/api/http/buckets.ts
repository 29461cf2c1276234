import type { Clock } from '../../../core/seams/clock.ts';

/** Keys kept; beyond it the ones that came first are forgotten, which gives their owners a full bucket. */
const KEYS = 10_000;

/** One token bucket for each key: so many requests a second, and so many at once above that. */
export class Buckets {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #levels = new Map<string, { readonly level: number; readonly atMs: number }>();

  constructor(options: { readonly clock: Clock; readonly perSecond: number; readonly burst: number }) {
    this.#clock = options.clock;
    this.#perSecond = options.perSecond;
    this.#burst = options.burst;
  }

  /** Takes one. @returns undefined when there was one, else the whole seconds after which there is one again */
  take(key: string): number | undefined {
    const nowMs = this.#clock.now();
    const known = this.#levels.get(key) ?? { level: this.#burst, atMs: nowMs };
    const level = Math.min(this.#burst, known.level + (Math.max(0, nowMs - known.atMs) * this.#perSecond) / 1000);
    const granted = level >= 1;
    this.#levels.delete(key);
    if (this.#levels.size >= KEYS) this.#levels.delete(this.#levels.keys().next().value as string);
    this.#levels.set(key, { level: granted ? level - 1 : level, atMs: nowMs });
    return granted ? undefined : Math.max(1, Math.ceil((1 - level) / this.#perSecond));
  }
}
