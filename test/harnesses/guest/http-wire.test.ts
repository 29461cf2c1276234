import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createWire, isSocketGone, type Wire } from '../../../harnesses/guest/http-wire.ts';

const opened: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

function socketPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'wire-'));
  opened.push(() => rmSync(directory, { recursive: true }));
  return join(directory, 'k.sock');
}

/** A kernel that answers by `listener`; tells how many connections it has accepted. */
async function kernel(listener: RequestListener): Promise<{ wire: Wire; connections: () => number }> {
  const path = socketPath();
  const server = createServer({ keepAliveTimeout: 0 }, listener);
  let connections = 0;
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  opened.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { wire: createWire(path), connections: () => connections };
}

/** A peer that speaks whatever `onSocket` writes. */
async function peer(onSocket: (socket: Socket) => void): Promise<Wire> {
  const path = socketPath();
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  opened.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return createWire(path);
}

const echo: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { authorization, 'content-type': type } = request.headers;
    response.end(
      JSON.stringify({ path: request.url, method: request.method, authorization, type, body: JSON.parse(`${Buffer.concat(chunks)}`) }),
    );
  });
};

describe('the wire of a guest', () => {
  it('posts JSON with a token over one connection, one request after the other', async () => {
    const { wire, connections } = await kernel(echo);
    for (const body of [{ text: 'h\u00e9 \u{1f600} \ud800' }, { big: 'x'.repeat(300_000) }]) {
      expect(await wire.post('call', 't.o.k', body)).toEqual({
        path: '/v1/call',
        method: 'POST',
        authorization: 'Bearer t.o.k',
        type: 'application/json',
        body,
      });
    }
    expect(connections()).toBe(1);
  });

  it('opens twelve connections for calls at most, and lets the thirteenth wait', async () => {
    const waiting: (() => void)[] = [];
    const { wire, connections } = await kernel((request, response) => {
      request.resume();
      waiting.push(() => response.end('{}'));
    });
    const posts = Array.from({ length: 30 }, () => wire.post('call', 't', {}));
    let answered = 0;
    while (answered < 30) {
      await expect.poll(() => waiting.length).toBeGreaterThan(0);
      answered += waiting.length;
      for (const answer of waiting.splice(0)) answer();
    }
    await Promise.all(posts);
    expect(connections()).toBe(12);
  });

  it('gives the code of a refusal, and takes another connection when the kernel closes this one', async () => {
    const { wire, connections } = await kernel((request, response) => {
      request.resume();
      response.writeHead(409, { connection: 'close' });
      response.end('{"error":{"code":"stale_fence","message":"taken over"}}');
    });
    for (let count = 0; count < 2; count += 1) {
      await expect(wire.post('call', 't', {})).rejects.toMatchObject({ status: 409, code: 'stale_fence', message: 'taken over' });
    }
    expect(connections()).toBe(2);
  });

  it('hands out the lines of a stream as they come, and of the control stream after it was opened', async () => {
    const { wire } = await kernel((request, response) => {
      request.resume();
      response.write('{"delta":"a"}\n{"del');
      setImmediate(() => response.end('ta":"b"}\n'));
    });
    const lines: unknown[] = [];
    await wire.postStream('call.stream', 't', {}, (line) => lines.push(line));
    await wire.control(
      't',
      () => lines.push('open'),
      (line) => lines.push(line),
    );
    expect(lines).toEqual([{ delta: 'a' }, { delta: 'b' }, 'open', { delta: 'a' }, { delta: 'b' }]);
  });

  it('gives a request up at once when it is aborted, also one that waits or comes too late', async () => {
    const { wire } = await kernel((request) => void request.resume());
    const abort = new AbortController();
    const posts = Array.from({ length: 14 }, () => wire.post('call', 't', {}, abort.signal));
    const outcomes = Promise.allSettled(posts);
    abort.abort();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: 'cancelled', status: 0 } });
    await expect(wire.post('call', 't', {}, abort.signal)).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('tells a lost answer from none: a connection that ends, one that says nonsense, a socket that is gone', async () => {
    const cut = await peer((socket) => socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{}')));
    await expect(cut.post('call', 't', {})).rejects.toMatchObject({ status: 0, code: 'guest_lost' });
    const nonsense = await peer((socket) => socket.on('data', () => socket.write('hello\r\n\r\n')));
    await expect(nonsense.post('call', 't', {})).rejects.toMatchObject({ status: 0, code: 'guest_lost' });
    const gone = createWire(socketPath());
    const error: unknown = await gone.post('call', 't', {}).catch((reason: unknown) => reason);
    expect(isSocketGone(error)).toBe(true);
  });

  it('gives a connection up on which more came than was asked for', async () => {
    let connections = 0;
    const wire = await peer((socket) => {
      connections += 1;
      const more = connections === 1 ? 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a":"b"}' : '';
      socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}${more}`));
    });
    for (let count = 0; count < 3; count += 1) expect(await wire.post('call', 't', {})).toEqual({});
    expect(connections).toBe(2);
  });
});
