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

/**
 * The machine's clock, read once and carried on by the monotonic one: within this process it never steps, so a clock that is set forward
 * ends no living lease and one that is set back keeps no dead one (BL-112). Time while the machine is suspended does not count.
 */
export function steadyClock(wall: () => number = Date.now, monotonic: () => number = () => performance.now()): Clock {
  const offset = wall() - monotonic();
  return { ...systemClock, now: () => Math.round(offset + monotonic()) };
}
