import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { keepTail } from '../../adapters/sandbox/bubblewrap/diagnostics.ts';
import type { Clock } from '../../core/seams/clock.ts';

describe('what a sandbox prints', () => {
  it('is kept to its last few KiB, and read no faster than the clock lets it be', async () => {
    const waiting: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      after(_, fn) {
        waiting.push(fn);
        return () => {};
      },
    };
    const stream = new PassThrough();
    const tail = keepTail([stream, null], clock);
    for (let i = 0; i < 10; i += 1) stream.write('x'.repeat(4096));
    await new Promise((resolve) => setImmediate(resolve));
    expect(waiting).toHaveLength(1);
    expect(stream.isPaused()).toBe(true);
    while (waiting.length > 0) {
      waiting.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    stream.end('the end');
    await new Promise((resolve) => setImmediate(resolve));
    expect(tail().length).toBeLessThanOrEqual(4096);
    expect(tail()).toMatch(/the end$/);
  });
});
