import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CallError, StoreError } from '../../core/errors.ts';
import { OPERATIONS, type OperationName } from '../../core/wire/protocol.ts';
import { OPERATION_SCHEMAS } from '../../core/wire/schemas.ts';
import { GOOD_BODIES, send, startMembrane, type TestMembrane, type TestSandbox } from './harness.ts';

let started: TestMembrane;
let sandbox: TestSandbox;
beforeAll(async () => {
  started = await startMembrane();
  sandbox = await started.openSandbox('ada');
});
afterAll(() => started[Symbol.asyncDispose]());

const posts = (Object.keys(GOOD_BODIES) as (keyof typeof GOOD_BODIES)[]).map((operation) => ({ operation }));
const tokenFor = (operation: OperationName): string => (OPERATIONS[operation].token === 'run' ? sandbox.runToken : sandbox.sandboxToken);
const post = (operation: keyof typeof GOOD_BODIES, body: unknown = GOOD_BODIES[operation]) =>
  send(sandbox.channel.socketPath, operation, { token: tokenFor(operation), body });

describe('operations over the socket', () => {
  it.each(posts)('$operation answers what its schema says', async ({ operation }) => {
    const answer = await post(operation);
    expect(answer.status).toBe(200);
    const validate = new Ajv({ strict: false }).compile(OPERATION_SCHEMAS[operation].reply);
    expect(validate(answer.json), JSON.stringify(validate.errors)).toBe(true);
  });

  it('every operation of the protocol has a case here', () => {
    expect([...Object.keys(GOOD_BODIES), 'control'].sort()).toEqual(Object.keys(OPERATIONS).sort());
  });

  it('passes the scope of the token and the body as it was sent', async () => {
    await post('call');
    expect(started.service.executed.at(-1)).toEqual({ operation: 'call', run: sandbox.run, body: GOOD_BODIES.call });
    await post('steer.next');
    expect(started.service.executed.at(-1)).toEqual({ operation: 'steer.next', run: sandbox.run, body: 3 });
    await post('exit', { kind: 'failed', code: 'gave_up', message: 'no idea' });
    expect(started.service.executed.at(-1)?.body).toEqual({ kind: 'failed', code: 'gave_up', message: 'no idea' });
  });

  it('keeps free arguments as they are: no type is changed, no field dropped', async () => {
    const args = { n: '1', list: [1, '1', null], deep: { extra: true }, text: 'ü\u0000\ud83d\ude00' };
    await post('call', { ...GOOD_BODIES.call, args });
    expect(started.service.executed.at(-1)?.body).toEqual({ ...GOOD_BODIES.call, args });
  });

  it('gives results back without a loss', async () => {
    started.service.onCall = async () => ({ effect: 'done', result: { any: [{ thing: 1 }] }, replayed: true });
    expect((await post('call')).json).toEqual({ effect: 'done', result: { any: [{ thing: 1 }] }, replayed: true });
  });

  it('call.stream sends deltas as lines before the reply', async () => {
    started.service.onCall = async (_body, onDelta) => {
      onDelta?.('Hel');
      onDelta?.('lo\n');
      return { effect: 'done', result: 'Hello\n', replayed: false };
    };
    const answer = await post('call.stream');
    expect(answer.headers['content-type']).toBe('application/x-ndjson');
    expect(
      answer.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([{ delta: 'Hel' }, { delta: 'lo\n' }, { reply: { effect: 'done', result: 'Hello\n', replayed: false } }]);
  });

  it('call.stream refuses like a call before its first line and says an error in its last line after it', async () => {
    started.service.onCall = async () => Promise.reject(new CallError('budget_exhausted', 'too many calls'));
    expect(await post('call.stream')).toMatchObject({ status: 429, json: { error: { code: 'budget_exhausted' } } });
    started.service.onCall = async (_body, onDelta) => {
      onDelta?.('Hel');
      throw new CallError('dispatch_failed', 'upstream went away');
    };
    const lines = (await post('call.stream')).text.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { delta: 'Hel' },
      { error: { code: 'dispatch_failed', message: 'upstream went away' } },
    ]);
  });

  it.each([
    [new CallError('invalid_arguments', 'no argv'), 400, 'invalid_arguments'],
    [new CallError('nondeterministic', 'other arguments'), 409, 'nondeterministic'],
    [new StoreError('lease_lost', 'taken over'), 409, 'lease_lost'],
    [new StoreError('text_unstorable', 'NUL'), 422, 'text_unstorable'],
  ])('passes the code of a refused call: %s', async (error, status, code) => {
    started.service.onCall = async () => Promise.reject(error);
    expect(await post('call')).toMatchObject({ status, json: { error: { code, message: error.message } } });
  });

  it('tells a guest nothing of a fault of the kernel, and the kernel everything', async () => {
    const fault = new Error('ENOENT: /state/outwork.db');
    started.service.onCall = async () => Promise.reject(fault);
    const answer = await post('call');
    expect(answer).toMatchObject({ status: 500, json: { error: { code: 'internal' } } });
    expect(answer.text).not.toContain('outwork.db');
    expect(started.faults.at(-1)).toBe(fault);
  });

  it('takes a body announced with Expect: 100-continue', async () => {
    started.service.onCall = async () => ({ effect: 'denied', reasons: [] });
    const { socketPath } = sandbox.channel;
    const answer = await send(socketPath, 'call', {
      token: sandbox.runToken,
      body: GOOD_BODIES.call,
      headers: { expect: '100-continue' },
    });
    expect(answer.json).toEqual({ effect: 'denied', reasons: [] });
  });

  it('counts requests, bytes and open connections of each sandbox apart', async () => {
    const other = await started.openSandbox('bob');
    const before = sandbox.channel.counters.requests;
    await send(other.channel.socketPath, 'call', { token: other.runToken, body: GOOD_BODIES.call });
    expect(other.channel.counters.requests).toBe(1);
    expect(other.channel.counters.bytes).toBeGreaterThan(JSON.stringify(GOOD_BODIES.call).length);
    expect(sandbox.channel.counters.requests).toBe(before);
    await other.channel.close();
    expect(other.channel.counters.connections).toBe(0);
  });

  it('documents every operation in OpenAPI 3.1 from the schemas that validate', () => {
    // biome-ignore lint/suspicious/noExplicitAny: a document is looked into
    const document = started.membrane.openApi() as any;
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths).sort()).toEqual(
      Object.values(OPERATIONS)
        .map(({ path }) => path)
        .sort(),
    );
    const call = document.paths['/v1/call'].post;
    expect(call.requestBody.content['application/json'].schema.properties.capability.maxLength).toBe(64);
    expect(call.security).toEqual([{ run: [] }]);
    expect(document.paths['/v1/control'].get.responses['200'].content).toHaveProperty('application/x-ndjson');
  });
});
