/** Tells waiters of this process that the event log may have grown. */
export class ChangeSignal {
  #cursor = 0;
  readonly #waiters = new Set<() => void>();

  /** `cursor` is durable. */
  advance(cursor: number): void {
    if (cursor <= this.#cursor) return;
    this.#cursor = cursor;
    for (const wake of [...this.#waiters]) wake();
  }

  /** Resolves at once when something newer than `from` is known, else with the next advance, the abort or the close. */
  changed(from: number, signal: AbortSignal): Promise<void> {
    if (this.#cursor > from || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#waiters.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiters.add(done);
      signal.addEventListener('abort', done);
    });
  }

  /** Lets every waiter go. */
  close(): void {
    for (const wake of [...this.#waiters]) wake();
  }
}
