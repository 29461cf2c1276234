import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import { SAFETY } from '../../core/limits.ts';
import { type Clock, systemClock } from '../../core/seams/clock.ts';
import { OPERATIONS, type OperationName } from '../../core/wire/protocol.ts';
import { GOOD_BODIES, openRequest, runClaims, send, sendRaw, startMembrane, type TestMembrane, type TestSandbox } from './harness.ts';

let started: TestMembrane;
let sandbox: TestSandbox;
let skewMs: number;
/** The machine's time, which a test may move on. */
const clock: Clock = { now: () => systemClock.now() + skewMs, after: systemClock.after };

beforeEach(async () => {
  skewMs = 0;
  started = await startMembrane({ clock });
  sandbox = await started.openSandbox('ada');
});
afterEach(() => started[Symbol.asyncDispose]());

const good = JSON.stringify(GOOD_BODIES.call);
const withArgs = (args: string): string => `{"key":{"step":0,"call":1},"capability":"shell.exec","args":${args}}`;
const nested = (levels: number): string => withArgs('['.repeat(levels) + ']'.repeat(levels));
const sendText = (text: string | Buffer, chunked = false) =>
  send(sandbox.channel.socketPath, 'call', { token: sandbox.runToken, text, chunked });
const sendCall = (token: string | undefined, headers = {}) => send(sandbox.channel.socketPath, 'call', { token, text: good, headers });

/** Nothing reached the kernel, and the kernel was told of exactly this. */
function expectRefused(operation: string, code: string): void {
  expect(started.service.executed).toEqual([]);
  expect(started.service.refusals).toEqual([{ sandbox: sandbox.generation, operation, code }]);
}

describe('bad bodies execute nothing and are reported', () => {
  it.each<[string, () => string | Buffer, boolean, number, string]>([
    ['oversize, with content-length', () => withArgs(`"${'x'.repeat(SAFETY.membraneBodyBytes)}"`), false, 413, 'body_too_large'],
    ['oversize, chunked', () => withArgs(`"${'x'.repeat(SAFETY.membraneBodyBytes)}"`), true, 413, 'body_too_large'],
    ['one level too deep', () => nested(SAFETY.membraneDepth), false, 400, 'body_too_deep'],
    ['a hundred thousand levels deep', () => nested(100_000), false, 400, 'body_too_deep'],
    ['not JSON', () => '{"key":', false, 400, 'malformed'],
    ['an unfinished string', () => '{"key":"', false, 400, 'malformed'],
    ['not UTF-8', () => Buffer.from(withArgs('"\u00ff"'), 'latin1'), false, 400, 'malformed'],
    ['a key twice', () => withArgs('{"argv":["ls"],"argv":["rm"]}'), false, 400, 'malformed'],
    ['a key twice, once escaped', () => withArgs('{"argv":["ls"],"\\u0061rgv":["rm"]}'), false, 400, 'malformed'],
    ['__proto__', () => withArgs('{"__proto__":{"admin":true}}'), false, 400, 'malformed'],
    ['__proto__, escaped', () => withArgs('{"\\u005f_proto__":{"admin":true}}'), false, 400, 'malformed'],
    ['a field too many', () => '{"key":{"step":0,"call":1},"capability":"shell.exec","args":{},"actor":"root"}', false, 400, 'malformed'],
    ['a field too few', () => '{"key":{"step":0,"call":1},"capability":"shell.exec"}', false, 400, 'malformed'],
    ['another type', () => '{"key":{"step":"0","call":1},"capability":"shell.exec","args":{}}', false, 400, 'malformed'],
    ['a number out of range', () => '{"key":{"step":-1,"call":1},"capability":"shell.exec","args":{}}', false, 400, 'malformed'],
    ['an array', () => '[]', false, 400, 'malformed'],
    ['empty', () => '', false, 400, 'malformed'],
  ])('%s', async (_name, text, chunked, status, code) => {
    const answer = await sendText(text(), chunked);
    expect(answer).toMatchObject({ status, json: { error: { code } } });
    expect(answer.text.length).toBeLessThan(700);
    expectRefused('call', code);
  });

  it('control: the same requests within bounds are executed', async () => {
    // A little below the bound for the text around the string.
    const large = withArgs(`"${'x'.repeat(SAFETY.membraneBodyBytes - 200)}"`);
    // The body's own object is a level as well.
    const deep = nested(SAFETY.membraneDepth - 1);
    for (const [text, chunked] of [
      [large, false],
      [large, true],
      [deep, false],
      [good, true],
      [withArgs('{"proto":{":":"{"}}'), false],
    ] as const) {
      expect((await sendText(text, chunked)).status).toBe(200);
    }
    expect(started.service.executed).toHaveLength(5);
    expect(started.service.refusals).toEqual([]);
  });

  it.each<[string, OperationName, string, string]>([
    ['a NUL in an exit claim', 'exit', '{"kind":"failed","code":"x","message":"\\u0000"}', 'malformed'],
    ['a lone surrogate in progress', 'progress.emit', '{"data":["\\ud800"]}', 'malformed'],
    [
      'progress beyond the bound of a small body',
      'progress.emit',
      `{"data":"${'x'.repeat(SAFETY.membraneSmallBodyBytes)}"}`,
      'body_too_large',
    ],
    ['a capability that is no name', 'call', '{"key":{"step":0,"call":1},"capability":"shell exec\\n","args":{}}', 'malformed'],
  ])('%s', async (_name, operation, text, code) => {
    const answer = await send(sandbox.channel.socketPath, operation, { token: sandbox.runToken, text });
    expect(answer.json.error.code).toBe(code);
    expectRefused(operation, code);
  });

  it('another media type', async () => {
    const answer = await sendCall(sandbox.runToken, { 'content-type': 'text/plain' });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: 'malformed' } } });
    expectRefused('call', 'malformed');
  });

  it.each([
    ['an unknown operation', 'POST', '/v1/sandbox.manage'],
    ['a known operation under another method', 'GET', '/v1/call'],
    ['an operation under a path that looks like it', 'POST', '/v1/call/../exit'],
    ['a path that cannot be decoded', 'POST', '/v1/%zz'],
  ])('%s', async (_name, method, path) => {
    const answer = await send(sandbox.channel.socketPath, 'call', { token: sandbox.runToken, path, method, body: {} });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.json.error.code).toBe('malformed');
    expectRefused('unknown', 'malformed');
  });
});

describe('tokens that are not good for a request look alike, execute nothing and are reported', () => {
  const cases: [string, () => Promise<string | undefined>][] = [
    ['no token', async () => undefined],
    ['no JWT', async () => 'hello'],
    ['a changed signature', async () => `${sandbox.runToken.slice(0, -4)}AAAA`],
    ['an unsigned token', async () => unsigned(sandbox.runToken)],
    ['a token of another kernel', async () => (await createRunTokens({ clock })).mint(runClaims('ada'), clock.now() + 60_000)],
    ['an expired token', async () => expired()],
    ["another sandbox's run token", async () => (await started.openSandbox('bob')).runToken],
    ["the same sandbox, another owner's name", async () => mint({ ...runClaims('ada'), user: 'bob' })],
    ['the same sandbox, another tenant', async () => mint({ ...runClaims('ada'), tenant: 'globex' })],
    ['a sandbox token on a run operation', async () => sandbox.sandboxToken],
    ['a token after its run was revoked', async () => revoked({ run: sandbox.run, belowFence: 2 })],
    ['a token after its sandbox was revoked', async () => revoked({ sandbox: sandbox.generation })],
  ];
  const mint = (claims: Parameters<TestMembrane['tokens']['mint']>[0]) => started.tokens.mint(claims, clock.now() + 60_000);

  it.each(cases)('%s', async (_name, token) => {
    const answer = await sendCall(await token());
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('{"error":{"code":"unauthenticated","message":"the token is not good for this"}}');
    expectRefused('call', 'unauthenticated');
  });

  it('control: the run token itself executes the same request', async () => {
    expect((await sendCall(sandbox.runToken)).status).toBe(200);
    expect(started.service.executed).toHaveLength(1);
    expect(started.service.refusals).toEqual([]);
  });

  const sandboxOperations = (Object.keys(OPERATIONS) as OperationName[]).filter((name) => OPERATIONS[name].token === 'sandbox');
  it.each(sandboxOperations)('a run token on the sandbox operation %s', async (operation) => {
    const answer = await send(sandbox.channel.socketPath, operation, {
      token: sandbox.runToken,
      body: operation === 'control' ? undefined : GOOD_BODIES[operation as keyof typeof GOOD_BODIES],
    });
    expect(answer.json.error.code).toBe('unauthenticated');
    expectRefused(operation, 'unauthenticated');
  });

  it('a good token on the socket of another sandbox is refused there and goes on working on its own', async () => {
    const other = await started.openSandbox('bob');
    const answer = await send(other.channel.socketPath, 'call', { token: sandbox.runToken, text: good });
    expect(answer.json.error.code).toBe('unauthenticated');
    expect(started.service.executed).toEqual([]);
    expect(started.service.refusals).toEqual([{ sandbox: other.generation, operation: 'call', code: 'unauthenticated' }]);
    expect((await sendCall(sandbox.runToken)).status).toBe(200);
  });

  it('does not read the body of a request whose token failed', async () => {
    const socket = connect(sandbox.channel.socketPath);
    socket.write('POST /v1/call HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{');
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).toContain('401');
    expect(head.toString().toLowerCase()).toContain('connection: close');
    await once(socket, 'close');
    expectRefused('call', 'unauthenticated');
  });

  async function expired(): Promise<string> {
    expect((await sendCall(sandbox.runToken)).status).toBe(200);
    started.service.forget();
    skewMs = 3_601_000;
    return sandbox.runToken;
  }

  async function revoked(what: Parameters<TestMembrane['tokens']['revoke']>[0]): Promise<string> {
    expect((await sendCall(sandbox.runToken)).status).toBe(200);
    started.service.forget();
    started.tokens.revoke(what);
    return sandbox.runToken;
  }
});

const unsigned = (token: string): string => {
  const header = Buffer.from('{"alg":"none","typ":"outwork-run+jwt"}').toString('base64url');
  return `${header}.${token.split('.')[1]}.AAAA`;
};

describe('the fence', () => {
  it('BL-110 a stale fence is refused', async () => {
    started.service.seats.set(sandbox.run, 2);
    const answer = await sendCall(sandbox.runToken);
    expect(answer).toMatchObject({ status: 409, json: { error: { code: 'stale_fence' } } });
    expectRefused('call', 'stale_fence');
  });

  it('BL-110 a stale fence is refused before the body is there', async () => {
    started.service.seats.set(sandbox.run, 2);
    const answer = await sendRaw(
      sandbox.channel.socketPath,
      `POST /v1/call HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${sandbox.runToken}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 409 /);
    expectRefused('call', 'stale_fence');
  });

  it('BL-110 a fence that goes stale while the body arrives is refused as well', async () => {
    const request = openRequest(sandbox.channel.socketPath, 'call', {
      token: sandbox.runToken,
      headers: { 'content-type': 'application/json', 'content-length': good.length, expect: '100-continue' },
    });
    // The answer to Expect shows that token and fence were found good.
    request.flushHeaders();
    await once(request, 'continue');
    started.service.seats.delete(sandbox.run);
    request.socket?.write(good);
    const [response] = await once(request, 'response');
    expect(response.statusCode).toBe(409);
    expectRefused('call', 'stale_fence');
  });
});

const head = (extra: string): string =>
  `POST /v1/call HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${sandbox.runToken}\r\ncontent-type: application/json\r\n${extra}`;

describe('framing', () => {
  it('BL-056 content-length together with chunked is refused and the connection closed', async () => {
    const smuggled = `${head(`content-length: ${good.length}\r\n`)}\r\n${good}`;
    const answer = await sendRaw(
      sandbox.channel.socketPath,
      `${head('content-length: 4\r\ntransfer-encoding: chunked\r\n')}\r\n0\r\n\r\n${smuggled}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expectRefused('request', 'malformed');
  });

  it('BL-056 control: each of the two requests alone is executed', async () => {
    const chunked = `${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`;
    expect(
      await sendRaw(sandbox.channel.socketPath, `${head('connection: close\r\ntransfer-encoding: chunked\r\n')}\r\n${chunked}`),
    ).toMatch(/ 200 /);
    expect(
      await sendRaw(sandbox.channel.socketPath, `${head(`connection: close\r\ncontent-length: ${good.length}\r\n`)}\r\n${good}`),
    ).toMatch(/ 200 /);
    expect(started.service.executed).toHaveLength(2);
  });

  it.each([
    ['two content-lengths', 'content-length: 2\r\ncontent-length: 3\r\n'],
    ['a content-length that is no number', 'content-length: 2x\r\n'],
    ['a transfer-encoding that is not understood', 'transfer-encoding: xchunked\r\n'],
    ['a header line without a colon', 'nonsense\r\n'],
    ['a bare line feed', 'x: 1\ny: 2\r\ncontent-length: 2\r\n'],
  ])('%s is refused', async (_name, extra) => {
    expect(await sendRaw(sandbox.channel.socketPath, `${head(extra)}\r\n{}`)).toMatch(/^HTTP\/1\.1 400 /);
    expectRefused('request', 'malformed');
  });

  it('a head beyond its bound is refused', async () => {
    expect(await sendRaw(sandbox.channel.socketPath, head(`x: ${'y'.repeat(SAFETY.membraneHeaderBytes)}\r\n`))).toMatch(/ 431 /);
    expectRefused('request', 'malformed');
  });

  it('a pipelined second request ends the connection', async () => {
    started.service.onCall = () => new Promise(() => undefined);
    const request = `${head(`content-length: ${good.length}\r\n`)}\r\n${good}`;
    expect(await sendRaw(sandbox.channel.socketPath, request + request)).toBe('');
    expect(started.service.refusals).toEqual([{ sandbox: sandbox.generation, operation: 'request', code: 'malformed' }]);
    expect(started.service.executed.length).toBeLessThanOrEqual(1);
  });

  it('a body that breaks off executes nothing', async () => {
    const socket = connect(sandbox.channel.socketPath);
    socket.write(`${head(`content-length: ${good.length + 1}\r\nexpect: 100-continue\r\n`)}\r\n${good}`);
    await once(socket, 'data');
    socket.destroy();
    await once(socket, 'close');
    // A request on another connection is answered only after the broken one has been seen.
    await send(sandbox.channel.socketPath, 'steer.next', { token: sandbox.runToken, body: { afterSeq: 0 } });
    expect(started.service.executed.map(({ operation }) => operation)).toEqual(['steer.next']);
  });
});

describe('requests that come too slowly', () => {
  const restart = async (limits = {}) => {
    await started[Symbol.asyncDispose]();
    started = await startMembrane({ clock, limits: { requestTimeoutMs: 1_000, headersTimeoutMs: 1_000, timeoutCheckMs: 50, ...limits } });
    sandbox = await started.openSandbox('ada');
  };
  beforeEach(() => restart());

  it('a body that comes too slowly is cut, executes nothing and is reported', async () => {
    const answer = await sendRaw(sandbox.channel.socketPath, `${head('content-length: 100\r\n')}\r\n{"key":`);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expectRefused('request', 'malformed');
  });

  it('a head that comes too slowly is cut and reported, whatever time its body may take', async () => {
    await restart({ requestTimeoutMs: 60_000 });
    expect(await sendRaw(sandbox.channel.socketPath, 'POST /v1/call HTTP/1.1\r\nho')).toMatch(/^HTTP\/1\.1 408 /);
    expectRefused('request', 'malformed');
  });

  it('control: a request that takes its time to be answered is not cut', async () => {
    const answered = Promise.withResolvers<void>();
    started.service.onCall = async () => {
      await answered.promise;
      return { effect: 'done', result: null, replayed: false };
    };
    const call = sendCall(sandbox.runToken);
    // By the time the slow head of another connection has been cut, the call has been waiting for as long.
    await sendRaw(sandbox.channel.socketPath, 'POST /v1/call HTTP/1.1\r\nho');
    answered.resolve();
    expect((await call).status).toBe(200);
  });
});
