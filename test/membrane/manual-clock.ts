import type { Clock } from '../../core/seams/clock.ts';

export interface ManualClock extends Clock {
  /** Moves time on and runs what is due, in order. */
  advance(ms: number): void;
  readonly timers: number;
}

/** A clock that stands still until a test moves it. */
export function manualClock(startMs = 1_700_000_000_000): ManualClock {
  let nowMs = startMs;
  const timers = new Set<{ readonly atMs: number; readonly fn: () => void }>();
  return {
    now: () => nowMs,
    after(ms, fn) {
      const timer = { atMs: nowMs + ms, fn };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (;;) {
        const [next] = [...timers].filter((timer) => timer.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) break;
        timers.delete(next);
        nowMs = Math.max(nowMs, next.atMs);
        next.fn();
      }
      nowMs = untilMs;
    },
    get timers() {
      return timers.size;
    },
  };
}
