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

/** What could not be loaded for want of something of the machine is tried again after so long. */
const AGAIN_MS = 5000;

/** Looks at the files of the bundle roots, again and again. */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  /** What they looked like at the last load, good or bad. */
  #marked = '';
  /** What they looked like at the last look, when that was new. */
  #candidate = '';
  /** From then on what is marked counts as new. */
  #againAtMs = Number.POSITIVE_INFINITY;
  #stop: (() => void) | undefined;
  #stopped = false;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** What is there now is about to be loaded. */
  mark(): void {
    this.#againAtMs = Number.POSITIVE_INFINITY;
    this.#marked = this.#look();
  }

  /** What is marked could not be loaded, and that is no fault of the files: they are loaded again, as they are, after 5 s. */
  tryAgain(): void {
    this.#againAtMs = this.#options.clock.now() + AGAIN_MS;
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
    const seen = this.#look();
    const again = this.#options.clock.now() >= this.#againAtMs;
    if (seen === this.#marked && !again) return;
    const settled = seen === this.#candidate || seen === this.#marked;
    this.#candidate = seen;
    if (settled) await this.#options.onChange();
  }

  /** A look that fails is one too: what was away and is back is new, though its files are what they were. */
  #look(): string {
    try {
      return bundleSignature(this.#options.dir, this.#options.siteDir);
    } catch {
      return 'unreadable';
    }
  }
}
