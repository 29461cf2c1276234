import type { Readable } from 'node:stream';
import type { Clock } from '../../../core/seams/clock.ts';

const KEPT_CHARS = 4096;
const PAUSE_MS = 50;

/**
 * Keeps the last few KiB of what a sandbox's own processes print. Reads at most one chunk each 50 ms: a sandbox that prints without end
 * blocks in its own write and costs the kernel nothing.
 */
export function keepTail(streams: readonly (Readable | null)[], clock: Clock): () => string {
  let tail = '';
  for (const stream of streams) {
    if (stream === null) continue;
    stream.setEncoding('utf8');
    stream.on('error', () => {});
    stream.on('data', (chunk: string) => {
      tail = (tail + chunk).slice(-KEPT_CHARS);
      stream.pause();
      clock.after(PAUSE_MS, () => stream.resume());
    });
  }
  return () => tail;
}
