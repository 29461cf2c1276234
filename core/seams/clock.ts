/** Time for the whole kernel; tests inject their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once after `ms`; the returned function takes it back. */
  after(ms: number, fn: () => void): () => void;
}

/** The machine's clock. Timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
