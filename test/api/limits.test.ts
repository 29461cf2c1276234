import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenAddress } from '../../adapters/api/http/listen-address.ts';
import type { ApiConfig } from '../../core/config.ts';
import { StoreError } from '../../core/errors.ts';
import { SAFETY } from '../../core/limits.ts';
import { type ApiWorld, apiWorld } from './api-world.ts';

let world: ApiWorld;
beforeEach(async () => {
  world = await apiWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

/** One raw exchange: fetch would repair what is sent here. */
function raw(text: string): Promise<string> {
  const { port, hostname } = new URL(world.server.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.end(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk;
    });
    socket.once('error', reject).once('close', () => resolve(answer));
  });
}

describe('rates', () => {
  it('a token has its burst, then its rate; another token has its own', async () => {
    const [ann, bob] = [await world.token('ann'), await world.token('bob')];
    const me = async (token: string) => (await world.call('GET', '/v1/me', { token })).status;
    for (let i = 0; i < SAFETY.apiBurst; i += 1) expect(await me(ann)).toBe(200);
    const limited = await world.call('GET', '/v1/me', { token: ann });
    expect([limited.status, limited.json.error.code, limited.headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    expect(await me(bob)).toBe(200);
    world.clock.advance(1000 / SAFETY.apiRequestsPerSecond);
    expect([await me(ann), await me(ann)]).toEqual([200, 429]);
  });

  it('those who guess tokens are limited together, and limit nobody who has one', async () => {
    const ann = await world.token('ann');
    const guess = async (n: number) => (await world.call('GET', '/v1/me', { token: `owt_${String(n).padStart(43, '0')}` })).status;
    for (let i = 0; i < SAFETY.apiRefusedBurst; i += 1) expect(await guess(i)).toBe(401);
    expect(await guess(1000)).toBe(429);
    expect((await world.call('GET', '/v1/me', { token: ann })).status).toBe(200);
    expect((await world.call('GET', '/healthz')).status).toBe(200);
  });
});

describe('bodies', () => {
  const post = async (body: string, headers = {}) => world.call('POST', '/v1/messages', { token: await world.token('ann'), body, headers });

  it.each([
    ['not JSON', '{', 400, 'malformed'],
    ['deep', `{"body":${'['.repeat(SAFETY.apiDepth)}1${']'.repeat(SAFETY.apiDepth)}}`, 400, 'body_too_deep'],
    ['a key twice', '{"body":"a","body":"b"}', 400, 'malformed'],
    ['a prototype', '{"body":"a","__proto__":{"actor":"bob"}}', 400, 'malformed'],
    ['an empty message', '{"body":""}', 400, 'invalid_argument'],
    ['a number for text', '{"body":7}', 400, 'invalid_argument'],
    ['a message over its bound', JSON.stringify({ body: 'x'.repeat(SAFETY.messageBytes + 1) }), 400, 'invalid_argument'],
    ['what no database holds', '{"body":"a\\u0000b"}', 400, 'invalid_argument'],
    ['a thread of another form', '{"body":"a","thread":"../etc"}', 400, 'invalid_argument'],
    ['a body over its bound', `"${'x'.repeat(SAFETY.apiBodyBytes)}"`, 413, 'body_too_large'],
  ])('%s is refused', async (_name, body, status, code) => {
    const answer = await post(body);
    expect([answer.status, answer.json.error.code]).toEqual([status, code]);
  });

  it('another content type is refused; the greatest message there may be is not', async () => {
    expect((await post('{"body":"a"}', { 'content-type': 'text/plain' })).status).toBe(400);
    expect((await post(JSON.stringify({ body: '\u0001'.repeat(SAFETY.messageBytes) }))).status).toBe(201);
  });

  it('a bad request tells its own fault and nothing of the code', async () => {
    const { text } = await post('{');
    expect(JSON.parse(text)).toEqual({ error: { code: 'malformed', message: 'the body is not JSON' } });
  });
});

describe('queries', () => {
  it.each(['limit=0', 'limit=1001', 'limit=ten', 'limit=1&limit=2', 'from=-1', 'from=1.5', 'from=1e400', 'run=run_x', 'what=ever'])(
    '%s is refused',
    async (query) => {
      expect((await world.call('GET', `/v1/events?${query}`, { token: await world.token('ann') })).status).toBe(400);
    },
  );
});

describe('heads', () => {
  it('every answer forbids caching, sniffing and framing, names its request, and allows no other origin', async () => {
    const token = await world.token('ann');
    const headers = { origin: 'https://evil.example' };
    const answers = await Promise.all([
      world.call('GET', '/v1/me', { token, headers }),
      world.call('GET', '/v1/me', { headers }),
      world.call('GET', '/nowhere', { headers }),
      world.call('OPTIONS', '/v1/messages', { headers: { ...headers, 'access-control-request-method': 'POST' } }),
    ]);
    for (const { headers: given } of answers) {
      expect(given.get('cache-control')).toBe('no-store');
      expect(given.get('x-content-type-options')).toBe('nosniff');
      expect(given.get('content-security-policy')).toContain("default-src 'none'");
      expect(given.get('x-request-id')).toMatch(/^req_/);
      expect([...given.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 404]);
    expect(new Set(answers.map((answer) => answer.headers.get('x-request-id'))).size).toBe(4);
  });

  it('a request under another name is refused: a page that a browser took for ours gets nothing', async () => {
    const ask = (host: string) => raw(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    expect(await ask('rebound.example')).toMatch(/^HTTP\/1\.1 421 [\s\S]*misdirected/);
    expect(await ask('127.0.0.1.evil.example')).toMatch(/^HTTP\/1\.1 421 /);
    for (const host of ['localhost', '127.0.0.1:80', '[::1]:7270']) expect(await ask(host)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('names that config lists are ours too', async () => {
    await using other = await apiWorld({ api: { hosts: ['agents.example'] } });
    const { port } = new URL(other.server.url);
    const socket = connect(Number(port), '127.0.0.1', () =>
      socket.end('GET /healthz HTTP/1.1\r\nhost: Agents.Example\r\nconnection: close\r\n\r\n'),
    );
    const [chunk] = await new Promise<[Buffer]>((resolve) => socket.once('data', (data) => resolve([data])));
    expect(String(chunk)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('what is no HTTP gets one refusal and its connection closed', async () => {
    expect(await raw('GARBAGE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [\s\S]*malformed/);
    expect(await raw(`GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(SAFETY.apiHeaderBytes)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 4\d\d /,
    );
  });
});

it('a fault of the kernel is logged with its request, and the client learns nothing of it', async () => {
  await using broken = await apiWorld({ operations: { listThreads: () => Promise.reject(new TypeError('inner detail')) } });
  const answer = await broken.call('GET', '/v1/threads', { token: await broken.token('ann') });
  expect([answer.status, answer.json]).toEqual([500, { error: { code: 'internal', message: 'the kernel could not do this' } }]);
  const [logged] = broken.logged.filter(({ level }) => level === 'error');
  expect(logged?.fields).toMatchObject({ request: answer.headers.get('x-request-id'), err: { message: 'inner detail' } });
});

it('a full disk is told as such', async () => {
  const full = () => Promise.reject(new StoreError('disk_full', 'The disk is full', { retryable: true }));
  await using broken = await apiWorld({ operations: { post: full } });
  const answer = await broken.call('POST', '/v1/messages', { token: await broken.token('ann'), body: { body: 'x' } });
  expect([answer.status, answer.json.error.code]).toEqual([503, 'disk_full']);
});

it('metrics need an operator, unless config opens them on loopback', async () => {
  expect((await world.call('GET', '/metrics')).status).toBe(401);
  expect((await world.call('GET', '/metrics', { token: await world.token('ann') })).status).toBe(403);
  expect((await world.call('GET', '/metrics', { token: await world.token('root', ['operator']) })).status).toBe(200);
  await using open = await apiWorld({ api: { metrics: 'open' } });
  expect((await open.call('GET', '/metrics')).status).toBe(200);
  // Nothing else opens with it.
  expect((await open.call('GET', '/v1/policy')).status).toBe(401);
});

it('a drained server says that it is not ready, and serves on', async () => {
  world.server.drain();
  expect((await world.call('GET', '/readyz')).json).toEqual({ ok: false, draining: true });
  expect((await world.call('GET', '/healthz')).status).toBe(200);
});

describe('the address', () => {
  const config = (api: Partial<ApiConfig>): ApiConfig => ({
    listen: '127.0.0.1:0',
    nonLoopback: undefined,
    hosts: [],
    metrics: 'operator',
    ...api,
  });

  it.each([
    ['127.0.0.1:7270', { host: '127.0.0.1', port: 7270, loopback: true }],
    ['127.8.8.8:1', { host: '127.8.8.8', port: 1, loopback: true }],
    ['localhost:0', { host: '127.0.0.1', port: 0, loopback: true }],
    ['[::1]:80', { host: '::1', port: 80, loopback: true }],
  ])('%s is loopback', (listen, address) => expect(listenAddress(config({ listen }))).toEqual(address));

  it.each(['0.0.0.0:80', '10.0.0.2:80', '[::]:80', '[::ffff:10.0.0.1]:80', '128.0.0.1:80'])(
    '%s is refused without a reason, and taken with one',
    (listen) => {
      expect(() => listenAddress(config({ listen }))).toThrow(
        expect.objectContaining({ code: 'config_malformed', hint: expect.stringContaining('nonLoopback') }),
      );
      expect(listenAddress(config({ listen, nonLoopback: 'behind a proxy that speaks TLS' })).loopback).toBe(false);
      expect(() => listenAddress(config({ listen, nonLoopback: 'behind a proxy that speaks TLS', metrics: 'open' }))).toThrow(/metrics/);
    },
  );

  it.each(['', '7270', 'example.com:80', '127.0.0.1', '127.0.0.1:99999', '127.0.0.1:-1', 'http://127.0.0.1:80', '::1:80'])(
    '%s is no address',
    (listen) => {
      expect(() => listenAddress(config({ listen, nonLoopback: 'a reason that is long' }))).toThrow(/no address and port/);
    },
  );

  it('one that is taken is named, with what to do', async () => {
    const taken = new URL(world.server.url).host;
    await expect(apiWorld({ api: { listen: taken } })).rejects.toMatchObject({
      code: 'address_unavailable',
      hint: expect.stringContaining('--listen'),
    });
  });
});
