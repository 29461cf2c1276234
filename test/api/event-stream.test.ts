import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KernelEvent } from '../../core/events.ts';
import { SAFETY } from '../../core/limits.ts';
import { type ApiWorld, apiWorld, HOUR } from './api-world.ts';

let world: ApiWorld;
const open: Reader[] = [];
beforeEach(async () => {
  world = await apiWorld();
});
afterEach(async () => {
  for (const reader of open.splice(0)) reader.close();
  await world[Symbol.asyncDispose]();
});

interface Sent {
  readonly id: number;
  readonly event: string | undefined;
  readonly data: KernelEvent | undefined;
}

/** A reader of server-sent events that parses what it gets. */
class Reader {
  readonly response: Response;
  readonly #abort: AbortController;
  readonly #body: ReadableStreamDefaultReader<Uint8Array>;
  #text = '';

  private constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
    this.#body = (response.body as ReadableStream<Uint8Array>).getReader();
  }

  static async open(token: string, path = '/v1/events/stream', headers: Record<string, string> = {}, at = world): Promise<Reader> {
    const abort = new AbortController();
    const response = await fetch(`${at.server.url}${path}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      signal: abort.signal,
    });
    const reader = new Reader(response, abort);
    open.push(reader);
    return reader;
  }

  /** The next frame; undefined when the stream has ended. */
  async next(): Promise<Sent | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split('\n');
        this.#text = this.#text.slice(end + 2);
        const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        const data = field('data');
        return { id: Number(field('id')), event: field('event'), data: data === undefined ? undefined : JSON.parse(data) };
      }
      const { done, value } = await this.#body.read();
      if (done) return undefined;
      this.#text += Buffer.from(value).toString();
    }
  }

  async nextEvent(): Promise<Sent | undefined> {
    for (;;) {
      const sent = await this.next();
      if (sent === undefined || sent.event !== undefined) return sent;
    }
  }

  close(): void {
    this.#abort.abort();
  }
}

const say = (token: string, body = 'hi') => world.call('POST', '/v1/messages', { token, body: { body } });

describe('a stream', () => {
  it('sends from now on, each event once and in order, under its cursor', async () => {
    const token = await world.token('ann');
    await say(token, 'before');
    const reader = await Reader.open(token);
    expect(reader.response.headers.get('content-type')).toBe('text/event-stream');
    expect(reader.response.headers.get('cache-control')).toBe('no-store');
    const { id: head } = (await reader.next()) as Sent;
    const { run } = (await say(token)).json;
    const sent = [await reader.nextEvent(), await reader.nextEvent()];
    expect(sent.map((one) => [one?.event, one?.data?.run, one?.id])).toEqual([
      ['message.posted', run.id, head + 1],
      ['run.queued', run.id, head + 2],
    ]);
    expect(sent[0]?.data?.cursor).toBe(sent[0]?.id);
  });

  it('goes on from a cursor: the header of a reader that comes back counts more than the query', async () => {
    const token = await world.token('ann');
    await say(token);
    const all = (await world.call('GET', '/v1/events', { token })).json.events as KernelEvent[];
    const [first, second] = all as [KernelEvent, KernelEvent];
    expect((await (await Reader.open(token, '/v1/events/stream?from=0')).nextEvent())?.id).toBe(first.cursor);
    const resumed = await Reader.open(token, '/v1/events/stream?from=0', { 'last-event-id': String(first.cursor) });
    expect((await resumed.nextEvent())?.id).toBe(second.cursor);
    const wrong = await Reader.open(token, '/v1/events/stream', { 'last-event-id': '1; drop' });
    expect(wrong.response.status).toBe(400);
  });

  it('shows a user the events of own runs, and an operator all', async () => {
    const [ann, bob, root] = [await world.token('ann'), await world.token('bob'), await world.token('root', ['operator'], 'ops')];
    const [own, all] = [await Reader.open(bob), await Reader.open(root)];
    await say(ann, 'not for bob');
    const { run } = (await say(bob)).json;
    expect((await own.nextEvent())?.data?.run).toBe(run.id);
    const seen = [];
    for (let i = 0; i < 4; i += 1) seen.push((await all.nextEvent())?.data?.run);
    expect(new Set(seen).size).toBe(2);
    const { run: second } = (await say(bob)).json;
    const one = await Reader.open(root, `/v1/events/stream?from=0&run=${second.id}`);
    expect((await one.nextEvent())?.data?.run).toBe(second.id);
  });

  it('says that it lives when nothing happens, and where the log is', async () => {
    const token = await world.token('ann');
    const reader = await Reader.open(token);
    await reader.next();
    // Something that is not for this reader: the heartbeat carries the cursor past it.
    const { cursor } = await world.store.events.append({ type: 'policy.loaded', data: {} }, world.clock.now());
    world.clock.advance(SAFETY.apiHeartbeatMs);
    await world.store.events.append({ type: 'policy.loaded', data: {} }, world.clock.now());
    const beat = await reader.next();
    expect(beat?.event).toBeUndefined();
    expect(beat?.id).toBeGreaterThanOrEqual(cursor);
  });

  it.each([
    ['its token is revoked', () => world.kernel.revokeTokens({ tenant: 'acme', name: 'ann' })],
    ['its user is disabled', () => world.kernel.disableUser({ tenant: 'acme', name: 'ann', disabled: true })],
    [
      'its token has come to its end',
      async () => {
        world.clock.advance(HOUR);
        await world.store.events.append({ type: 'policy.loaded', data: {} }, world.clock.now());
      },
    ],
    ['the server closes', () => world.server.close()],
  ])('ends when %s', async (_name, end) => {
    const reader = await Reader.open(await world.token('ann'));
    await reader.next();
    await end();
    // A connection that is cut and one that is ended are both an end.
    expect(await reader.nextEvent().catch(() => undefined)).toBeUndefined();
  });

  it('is one of a few: the next of the same token is refused until one ends, another token has its own', async () => {
    const [ann, bob] = [await world.token('ann'), await world.token('bob')];
    const readers = [];
    for (let i = 0; i < SAFETY.apiStreamsPerToken; i += 1) readers.push(await Reader.open(ann));
    const refused = await world.call('GET', '/v1/events/stream', { token: ann });
    expect([refused.status, refused.json.error.code]).toEqual([429, 'too_many_streams']);
    expect((await Reader.open(bob)).response.status).toBe(200);
    for (const reader of readers) reader.close();
    // Room is made when the server sees the connection end, which no answer tells.
    for (;;) {
      const again = await Reader.open(ann);
      if (again.response.status === 200) break;
      world.clock.advance(1000);
    }
  });
});

it('a reader that takes nothing is cut off, and no more than its bound was read for it', async () => {
  let read = 0;
  // A log without an end.
  const events = async (from: number): Promise<readonly KernelEvent[]> => {
    read += 50;
    return Array.from({ length: 50 }, (_, i) => ({
      cursor: from + i + 1,
      atMs: 0,
      type: 'run.progress' as const,
      data: { text: 'x'.repeat(4000) },
    }));
  };
  await using endless = await apiWorld({ operations: { events } });
  const token = await endless.token('root', ['operator']);
  const { port, hostname } = new URL(endless.server.url);
  const socket: Socket = connect(Number(port), hostname);
  socket.write(`GET /v1/events/stream?from=0 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  socket.pause();
  // Blocked: nothing was read for some turns of the loop, with the socket's own buffers full.
  for (let seen = -1, still = 0; still < 200; ) {
    await new Promise((resolve) => setImmediate(resolve));
    still = read === seen && read > 0 ? still + 1 : 0;
    seen = read;
  }
  const blockedAt = read;
  endless.clock.advance(SAFETY.apiStreamStallMs - 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).toBe(blockedAt);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  endless.clock.advance(1);
  socket.resume();
  await closed;
  expect(read).toBe(blockedAt);
});
