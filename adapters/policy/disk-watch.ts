import type { Clock } from '../../core/seams/clock.ts';
import { bundleSignature } from './bundle.ts';

export interface DiskWatchOptions {
  readonly dir: string;
  readonly siteDir?: string | undefined;
  readonly clock: Clock;
  /** Milliseconds between two looks. */
  readonly pollMs: number;
  /** Files are other than at the last `mark`, and two looks in a row saw the same: one that is being written is not read. */
  readonly onChange: () => Promise<void>;
}

/** Looks at the files of the bundle roots, again and again. */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  /** What they looked like at the last load, good or bad. */
  #marked = '';
  /** What they looked like at the last look, when that was new. */
  #candidate = '';
  #stop: (() => void) | undefined;
  #stopped = false;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** What is there now is about to be loaded. */
  async mark(): Promise<void> {
    this.#marked = await this.#look();
  }

  start(): void {
    if (this.#stopped) return;
    this.#stop = this.#options.clock.after(this.#options.pollMs, () => void this.#lookAgain().finally(() => this.start()));
  }

  stop(): void {
    this.#stopped = true;
    this.#stop?.();
  }

  async #lookAgain(): Promise<void> {
    const seen = await this.#look();
    if (seen === this.#marked) return;
    const settled = seen === this.#candidate;
    this.#candidate = seen;
    if (settled) await this.#options.onChange();
  }

  /** A look that fails is one too: what was away and is back is new, though its files are what they were. */
  #look(): Promise<string> {
    return bundleSignature(this.#options.dir, this.#options.siteDir).catch(() => 'unreadable');
  }
}
