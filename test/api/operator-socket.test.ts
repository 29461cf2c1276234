import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectOperator, isUnreachable, type OperatorClient } from '../../adapters/api/operator-client.ts';
import { OPERATOR_METHODS, REQUEST_BYTES } from '../../adapters/api/operator-methods.ts';
import { type OperatorServer, serveOperations } from '../../adapters/api/operator-server.ts';
import { loadConfig } from '../../adapters/config.ts';
import { PrerequisiteError, StoreError, UsageError } from '../../core/errors.ts';
import { SAFETY } from '../../core/limits.ts';
import { createMemoryKernel, type MemoryKernel } from '../support/memory-kernel.ts';

let dir: string;
let socketPath: string;
let kernel: MemoryKernel;
let server: OperatorServer;
let client: OperatorClient;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-op-'));
  socketPath = join(dir, 'operator.sock');
  kernel = createMemoryKernel(loadConfig({ env: { HOME: dir }, cwd: dir }));
  server = await serveOperations(kernel, socketPath);
  const connected = await connectOperator(socketPath);
  if (connected === undefined) throw new Error('nobody listens');
  client = connected;
});
afterEach(async () => {
  await client.close();
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

/** One raw request, past the client's own manners. */
function raw(path: string, body: string, headers: Record<string, string> = { 'content-type': 'application/json' }, method = 'POST') {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const outgoing = request({ socketPath, path, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

describe('the operator socket', () => {
  it('is for its owner alone', () => {
    expect(statSync(socketPath).mode & 0o777).toBe(0o600);
  });

  it('carries every operation of a kernel', async () => {
    const user = await client.addUser({ tenant: 'main', name: 'ann', roles: ['user'] });
    expect(await client.listUsers()).toEqual([user]);
    expect(await client.listUsers('other')).toEqual([]);
    const { run, thread } = await client.post({ tenant: 'main', user: 'ann', body: 'hi \u{1f600}' });
    expect((await client.showRun(run.id)).run.id).toBe(run.id);
    expect((await client.listRuns({ limit: 5, thread: thread.id })).length).toBe(1);
    expect((await client.listThreads('main', 5)).map(({ id }) => id)).toEqual([thread.id]);
    expect((await client.showThread('main', thread.id)).messages.map(({ body }) => body)).toEqual(['hi \u{1f600}']);
    expect((await client.steerRun({ tenant: 'main', run: run.id, user: 'ann', body: 'also' })).steers).toBe(true);
    expect((await client.events(0, { run: run.id }, 10)).map(({ type }) => type)).toEqual(['message.posted', 'run.queued']);
    await client.eventsChanged(0, 1000);
    expect((await client.cancelRun(run.id)).state).toBe('cancelled');
    expect((await client.issueToken({ tenant: 'main', name: 'ann', ttlMs: 60_000 })).token).toBe('owt_test');
    expect((await client.policyStatus()).ready).toBe(true);
    await expect(client.resolveRun(run.id, 'done')).rejects.toMatchObject({ code: 'conflict' });
  });

  it('raises an error as the kernel raised it: class, code and hint', async () => {
    await client.addUser({ tenant: 'main', name: 'ann', roles: [] });
    await expect(client.addUser({ tenant: 'main', name: 'ann', roles: [] })).rejects.toBeInstanceOf(StoreError);
    await expect(client.post({ tenant: 'main', user: 'nobody', body: 'x' })).rejects.toMatchObject({
      name: 'UsageError',
      code: 'not_found',
    });
  });

  it('gives an inner failure no class and no stack', async () => {
    kernel.listUsers = () => Promise.reject(new TypeError('boom'));
    await expect(client.listUsers()).rejects.toThrow('boom');
    expect((await raw('/v1/listUsers', '{"args":[]}')).body).not.toContain('.ts');
  });
});

describe('requests that are refused', () => {
  const body = (args: unknown) => JSON.stringify({ args });
  const post = { tenant: 'main', user: 'ann', body: 'x' };

  it.each([
    ['an unknown field', 'post', body([{ ...post, actor: 'root' }])],
    ['a number where text belongs', 'post', body([{ ...post, body: 5 }])],
    ['a numeral where a number belongs', 'listThreads', body(['main', '5'])],
    ['an argument too many', 'policyStatus', body([1])],
    ['an argument too few', 'resolveRun', body(['run_00000000000000000000000000'])],
    ['an id of another kind', 'showRun', body(['thr_00000000000000000000000000'])],
    ['a name that climbs', 'listThreads', body(['../x', 1])],
    ['a limit out of bounds', 'listThreads', body(['main', 100_000])],
    ['a wait out of bounds', 'eventsChanged', body([0, 10_000_000])],
    ['an empty message', 'post', body([{ ...post, body: '' }])],
    ['a message over its bound', 'post', body([{ ...post, body: 'x'.repeat(SAFETY.messageBytes + 1) }])],
    ['no arguments', 'policyStatus', '{}'],
    ['something beside the arguments', 'policyStatus', '{"args":[],"more":1}'],
    ['what is not JSON', 'policyStatus', '{"args":['],
    ['an empty body', 'policyStatus', ''],
    ['deep nesting', 'policyStatus', `{"args":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['a prototype', 'post', '{"args":[{"tenant":"main","user":"ann","body":"x","__proto__":{"origin":"operator"}}]}'],
    ['a body over its bound', 'post', 'x'.repeat(REQUEST_BYTES + 1)],
  ])('%s', async (_name, method, text) => {
    const answer = await raw(`/v1/${method}`, text);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ area: 'UsageError', error: { code: 'invalid_argument' } });
  });

  it('operations that are none, other verbs and other content types', async () => {
    for (const path of ['/v1/close', '/v1/start', '/v1/constructor', '/', '/v1/post/..']) {
      expect(JSON.parse((await raw(path, body([]))).body)).toMatchObject({ error: { code: 'not_found' } });
    }
    expect((await raw('/v1/policyStatus', '', {}, 'GET')).status).toBe(400);
    expect((await raw('/v1/policyStatus', body([]), { 'content-type': 'text/plain' })).status).toBe(400);
    expect((await raw('/v1/policyStatus', body([]))).status).toBe(200);
  });

  it('the table of operations lists nothing that starts or ends the kernel', () => {
    expect(Object.keys(OPERATOR_METHODS)).not.toContain('close');
    expect(Object.keys(OPERATOR_METHODS)).not.toContain('start');
  });
});

describe('the socket file', () => {
  it('a dead one is replaced, and reads as no kernel', async () => {
    const dead = join(dir, 'dead.sock');
    await leaveDeadSocket(dead);
    expect(await connectOperator(dead)).toBeUndefined();
    const replacement = await serveOperations(kernel, dead);
    const other = await connectOperator(dead);
    expect((await other?.policyStatus())?.ready).toBe(true);
    await other?.close();
    await replacement.close();
  });

  it('a live one is not taken over', async () => {
    await expect(serveOperations(kernel, socketPath)).rejects.toMatchObject({ code: 'state_locked' });
    expect((await client.policyStatus()).ready).toBe(true);
  });

  it('something else in its place is left alone', async () => {
    const file = join(dir, 'file');
    writeFileSync(file, 'precious');
    symlinkSync(socketPath, join(dir, 'link'));
    for (const path of [file, join(dir, 'link')]) {
      await expect(serveOperations(kernel, path)).rejects.toBeInstanceOf(PrerequisiteError);
      await expect(connectOperator(path)).rejects.toBeInstanceOf(PrerequisiteError);
    }
  });

  it('is gone after close, and a client then says that the kernel went away', async () => {
    await server.close();
    expect(statSync(socketPath, { throwIfNoEntry: false })).toBeUndefined();
    const failure = await client.policyStatus().catch((error: unknown) => error);
    expect(isUnreachable(failure)).toBe(true);
    expect(isUnreachable(new UsageError('not_found', ''))).toBe(false);
  });

  it('close ends a call that waits', async () => {
    const waiting = client.eventsChanged(1000, 30_000).catch((error: unknown) => error);
    await client.policyStatus();
    await server.close();
    expect(isUnreachable(await waiting)).toBe(true);
  });
});

describe('a kernel that is silent', () => {
  /** Accepts, reads and says nothing, as a stopped process does. */
  async function mute(): Promise<{ path: string; close(): Promise<void> }> {
    const held = new Set<Socket>();
    const path = join(dir, 'mute.sock');
    const listener = createServer((socket) => held.add(socket)).listen(path);
    await once(listener, 'listening');
    const close = async () => {
      for (const socket of held) socket.destroy();
      listener.close();
      await once(listener, 'close');
    };
    return { path, close };
  }

  it('is given up with its socket, its process and what to do', async () => {
    const { path, close } = await mute();
    writeFileSync(join(dir, 'kernel.pid'), `${process.pid}\n`);
    await expect(connectOperator(path, 50)).rejects.toMatchObject({
      code: 'kernel_unresponsive',
      message: expect.stringMatching(new RegExp(`${path}.*process ${process.pid}\\b`)),
      hint: expect.stringContaining(`kill ${process.pid}`),
    });
    await close();
  });

  it('is given up in the middle of an operation too', async () => {
    let silent = false;
    const path = join(dir, 'later.sock');
    const listener = createHttpServer((request, response) => {
      if (!silent && request.method === 'GET') response.end('{}');
    }).listen(path);
    await once(listener, 'listening');
    const other = await connectOperator(path, 50);
    silent = true;
    await expect(other?.eventsHead()).rejects.toMatchObject({ code: 'kernel_unresponsive' });
    await other?.close();
    listener.closeAllConnections();
    listener.close();
    await once(listener, 'close');
  });

  it('control: an operation takes as long as it likes while the kernel answers', async () => {
    const patient = await connectOperator(socketPath, 20);
    expect(await patient?.eventsChanged(1000, 300)).toBeNull();
    await patient?.close();
  });
});

/** A socket file whose listener is dead: closing a Node server removes it, so the listener is killed with its process. */
async function leaveDeadSocket(path: string): Promise<void> {
  const { spawn } = await import('node:child_process');
  const child = spawn(process.execPath, ['-e', `require('net').createServer().listen(${JSON.stringify(path)},()=>console.log('up'))`]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  expect(statSync(path).isSocket()).toBe(true);
}
