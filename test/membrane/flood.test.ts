import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SAFETY } from '../../core/limits.ts';
import { GOOD_BODIES, openRequest, send, startMembrane, type TestMembrane, type TestSandbox } from './harness.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';

let clock: ManualClock;
let started: TestMembrane;
let flooder: TestSandbox;
let victim: TestSandbox;
/** Signature checks asked for with a token that is not good. */
let verifications: number;

async function start(limits = {}): Promise<void> {
  clock = manualClock();
  verifications = 0;
  started = await startMembrane({
    clock,
    limits,
    wrapTokens: (tokens) => ({
      ...tokens,
      async verify(token) {
        const claims = await tokens.verify(token);
        if (claims === undefined) verifications += 1;
        return claims;
      },
    }),
  });
  flooder = await started.openSandbox('mallory');
  victim = await started.openSandbox('ada');
}
beforeEach(() => start());
afterEach(() => started[Symbol.asyncDispose]());

const badToken = () => `${flooder.runToken.slice(0, -4)}AAAA`;

/** Sends bad requests on a connection of its own, the next when the last was answered, until the kernel answers no more. */
function floodConnection(): { readonly socket: Socket; answered: number; dropped: boolean } {
  const body = JSON.stringify(GOOD_BODIES.call);
  const request = `POST /v1/call HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${badToken()}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(flooder.channel.socketPath);
  const state = { socket, answered: 0, dropped: false };
  socket.on('connect', () => socket.write(request));
  socket.on('data', () => {
    state.answered += 1;
    socket.write(request);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    state.dropped = true;
  });
  return state;
}

const callVictim = () => send(victim.channel.socketPath, 'call', { token: victim.runToken, body: GOOD_BODIES.call });

/** One turn of the event loop, its thread pool included, where signatures are checked. */
async function turn(): Promise<void> {
  await stat('/');
  await setImmediate();
}

/** Resolves with the count when it has not changed for 50 turns: nothing of the flood moves any more. */
async function settled(count: () => number): Promise<number> {
  let last = count();
  for (let same = 0; same < 50; ) {
    await turn();
    same = count() === last ? same + 1 : 0;
    last = count();
  }
  return last;
}

describe('hole 19: one sandbox floods with failed tokens on 64 connections', () => {
  it('costs the kernel a bounded number of signature checks, while every call of another sandbox is executed', async () => {
    const flood = Array.from({ length: 64 }, floodConnection);
    const first = await settled(() => verifications);
    // The burst pays for a tenth as many failures; requests already past the bucket come on top, one a connection.
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThanOrEqual(SAFETY.membraneBurst / SAFETY.failedTokenCost + SAFETY.membraneConnections);
    expect(flooder.channel.counters.connections).toBeLessThanOrEqual(SAFETY.membraneConnections);

    // A second later the bucket has paid for a second's worth, and not for more.
    for (let i = 0; i < 100; i += 1) {
      clock.advance(10);
      await callVictim();
    }
    const second = (await settled(() => verifications)) - first;
    expect(second).toBeGreaterThan(0);
    expect(second).toBeLessThanOrEqual(SAFETY.membraneRequestsPerSecond / SAFETY.failedTokenCost + SAFETY.membraneConnections);

    expect(started.service.executed.every(({ run }) => run === victim.run)).toBe(true);
    expect(started.service.executed).toHaveLength(100);
    expect(started.service.refusals.length).toBeLessThanOrEqual(23);
    for (const { socket } of flood) socket.destroy();
  });

  it('control: without the bucket the same flood gets every one of its signatures checked', async () => {
    await started[Symbol.asyncDispose]();
    await start({ requestsPerSecond: 1e9, burst: 1e9 });
    const flood = Array.from({ length: 64 }, floodConnection);
    while (verifications < 500) await turn();
    for (const { socket } of flood) socket.destroy();
  });

  it('pauses the excess without an answer and answers it when the bucket has refilled', async () => {
    await started[Symbol.asyncDispose]();
    // Two connections with a request each, and one more connection.
    await start({ requestsPerSecond: 1, burst: 5 });
    const call = () => send(flooder.channel.socketPath, 'call', { token: flooder.runToken, body: GOOD_BODIES.call });
    await Promise.all([call(), call()]);
    const paused = openRequest(flooder.channel.socketPath, 'call', { token: flooder.runToken, body: GOOD_BODIES.call });
    let answered = false;
    const response = once(paused, 'response').then(([message]) => {
      answered = true;
      return message;
    });
    while (flooder.channel.counters.requests < 3) await turn();
    expect(answered).toBe(false);
    expect(started.service.executed.filter(({ run }) => run === flooder.run)).toHaveLength(2);
    clock.advance(1_000);
    expect((await response).statusCode).toBe(200);
  });

  it('large bodies draw on the bucket by their size, chunked or not', async () => {
    await started[Symbol.asyncDispose]();
    // A connection, a request, its 64 KiB, and the next connection.
    await start({ requestsPerSecond: 1, burst: 67, bytesPerRequest: 1024 });
    const body = { ...GOOD_BODIES.call, args: { text: 'x'.repeat(64 * 1024) } };
    const text = JSON.stringify(body);
    for (const chunked of [false, true]) {
      const before = started.service.executed.length;
      expect((await send(flooder.channel.socketPath, 'call', { token: flooder.runToken, text, chunked })).status).toBe(200);
      const next = send(flooder.channel.socketPath, 'call', { token: flooder.runToken, body: GOOD_BODIES.call });
      await untilRequests(before + 2);
      expect(started.service.executed).toHaveLength(before + 1);
      clock.advance(100_000);
      expect((await next).status).toBe(200);
    }
  });

  it('garbage on ever new connections is read no faster than the bucket pays for connections', async () => {
    let answered = 0;
    let stop = false;
    const open = (): void => {
      const socket = connect(flooder.channel.socketPath);
      socket.on('connect', () => socket.write('nonsense\r\n\r\n'));
      socket.on('error', () => undefined);
      socket.on('data', () => {
        answered += 1;
      });
      socket.on('close', () => {
        if (!stop) open();
      });
    };
    for (let i = 0; i < SAFETY.membraneConnections; i += 1) open();
    try {
      expect(await settled(() => answered)).toBe(SAFETY.membraneBurst);
      clock.advance(10);
      expect(await settled(() => answered)).toBe(SAFETY.membraneBurst + 4);
    } finally {
      stop = true;
    }
  });

  it('connections beyond the bound are closed at once; the others go on', async () => {
    const idle = Array.from({ length: SAFETY.membraneConnections }, () => connect(flooder.channel.socketPath));
    await Promise.all(idle.map((socket) => once(socket, 'connect')));
    const extra = connect(flooder.channel.socketPath);
    await once(extra, 'close');
    expect(started.service.refusals).toEqual([{ sandbox: flooder.generation, operation: 'connection', code: 'rate_limited' }]);
    const refused = started.service.refusals.length;
    const closed = once(idle[0] as Socket, 'close');
    idle[0]?.destroy();
    await closed;
    await callVictim();
    expect((await send(flooder.channel.socketPath, 'call', { token: flooder.runToken, body: GOOD_BODIES.call })).status).toBe(200);
    expect(started.service.refusals).toHaveLength(refused);
    for (const socket of idle) socket.destroy();
  });

  async function untilRequests(requests: number): Promise<void> {
    while (flooder.channel.counters.requests < requests) await turn();
  }
});
