import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/seams/clock.ts';
import type { ControlMessage } from '../../core/wire/protocol.ts';
import type { MembraneLimits } from './limits.ts';

export interface ControlStream {
  /** @returns false when the stream has ended, or ended because of this message. */
  write(message: ControlMessage): boolean;
  end(): void;
}

/**
 * The kernel's half of a guest's control stream. It pings, and it cuts a guest that does not read: one for which more than
 * `streamBytes` wait, or that took nothing of what waits for `stallMs`. What was not read is then dropped, so the end is for good.
 */
export function openControlStream(options: {
  readonly response: ServerResponse;
  readonly clock: Clock;
  readonly limits: MembraneLimits;
  readonly onEnd: () => void;
}): ControlStream {
  const { response, clock, limits, onEnd } = options;
  let waiting = 0;
  let progressAtMs = clock.now();
  let cancelPing: () => void = () => undefined;
  let ended = false;

  const end = (): void => {
    if (ended) return;
    ended = true;
    cancelPing();
    response.destroy();
    onEnd();
  };

  const write = (message: ControlMessage): boolean => {
    if (ended) return false;
    if (waiting === 0) progressAtMs = clock.now();
    waiting += 1;
    response.write(`${JSON.stringify(message)}\n`, () => {
      waiting -= 1;
      progressAtMs = clock.now();
    });
    if (response.writableLength > limits.streamBytes) end();
    return !ended;
  };

  const ping = (): void => {
    if (waiting > 0 && clock.now() - progressAtMs >= limits.stallMs) {
      end();
      return;
    }
    write({ type: 'ping' });
    cancelPing = clock.after(limits.pingMs, ping);
  };

  response.once('close', end);
  response.once('error', end);
  response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
  response.flushHeaders();
  cancelPing = clock.after(limits.pingMs, ping);
  return { write, end };
}
