import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Membrane, SandboxChannel } from '../../adapters/membrane/channel.ts';
import { createMembrane, type MembraneOptions } from '../../adapters/membrane/server.ts';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import { type Clock, systemClock } from '../../core/seams/clock.ts';
import type { RunTokens } from '../../core/seams/run-tokens.ts';
import { OPERATIONS, type OperationName, WIRE_VERSION } from '../../core/wire/protocol.ts';
import { type RecordingService, recordingService } from './recording-service.ts';

export const GUEST = 'a'.repeat(64);

/** One sandbox with a seated run, and the tokens its guest would hold. */
export interface TestSandbox {
  readonly user: string;
  readonly generation: string;
  readonly run: string;
  readonly channel: SandboxChannel;
  readonly sandboxToken: string;
  readonly runToken: string;
}

export interface TestMembrane extends AsyncDisposable {
  readonly membrane: Membrane;
  readonly service: RecordingService;
  readonly tokens: RunTokens;
  readonly clock: Clock;
  readonly faults: readonly unknown[];
  openSandbox(user: string): Promise<TestSandbox>;
}

export async function startMembrane(
  options: Partial<MembraneOptions> & { readonly wrapTokens?: (tokens: RunTokens) => RunTokens } = {},
): Promise<TestMembrane> {
  const { wrapTokens = (tokens: RunTokens) => tokens, ...membraneOptions } = options;
  const clock = options.clock ?? systemClock;
  const service = recordingService();
  const tokens = wrapTokens(await createRunTokens({ clock }));
  const dir = await mkdtemp(join(tmpdir(), 'membrane-'));
  const faults: unknown[] = [];
  const membrane = await createMembrane({
    service,
    tokens,
    clock,
    guestDigest: () => GUEST,
    onFault: (error) => faults.push(error),
    ...membraneOptions,
  });
  return {
    membrane,
    service,
    tokens,
    clock,
    faults,
    async openSandbox(user) {
      const socketDir = await mkdtemp(join(dir, 's-'));
      const generation = `gen-${user}`;
      const run = `run-${user}`;
      const owner = { tenant: 'acme', user };
      const channel = await membrane.open({ ...owner, generation, socketDir });
      service.seats.set(run, 1);
      const untilMs = clock.now() + 3_600_000;
      return {
        user,
        generation,
        run,
        channel,
        sandboxToken: await tokens.mint({ kind: 'sandbox', ...owner, sandbox: generation }, untilMs),
        runToken: await tokens.mint(runClaims(user), untilMs),
      };
    },
    async [Symbol.asyncDispose]() {
      await membrane.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export const runClaims = (user: string, fence = 1) =>
  ({
    kind: 'run',
    tenant: 'acme',
    user,
    sandbox: `gen-${user}`,
    thread: `thr-${user}`,
    run: `run-${user}`,
    fence,
    placement: 'persistent-per-user',
  }) as const;

/** A well-formed body for every operation. */
export const GOOD_BODIES = {
  hello: { wire: WIRE_VERSION, guest: GUEST },
  'control.reply': { id: 'q1', error: { code: 'timeout', message: 'late' } },
  'context.get': {},
  call: { key: { step: 0, call: 1 }, capability: 'shell.exec', args: { argv: ['ls'] } },
  'call.stream': { key: { step: 0, call: 1 }, capability: 'model.generate', args: { messages: [] } },
  'permit.close': { permit: 'prm_1', error: { code: 'not_found', message: 'no such program' } },
  'progress.emit': { data: { note: 'half way' } },
  'steer.next': { afterSeq: 3 },
  'checkpoint.get': {},
  exit: { kind: 'completed' },
} as const satisfies Record<Exclude<OperationName, 'control'>, unknown>;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers
  readonly json: any;
}

interface Sent {
  readonly token?: string | undefined;
  readonly body?: unknown;
  /** Sent as it is, without a content-length when `chunked`. */
  readonly text?: string | Buffer;
  readonly chunked?: boolean;
  readonly headers?: OutgoingHttpHeaders;
  readonly path?: string;
  readonly method?: string;
}

export function openRequest(socketPath: string, operation: OperationName, sent: Sent = {}): ClientRequest {
  const payload = sent.text ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body));
  const request = httpRequest({
    socketPath,
    path: sent.path ?? OPERATIONS[operation].path,
    method: sent.method ?? (operation === 'control' ? 'GET' : 'POST'),
    agent: false,
    headers: {
      ...(sent.token === undefined ? {} : { authorization: `Bearer ${sent.token}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
      ...(payload === undefined || sent.chunked === true ? {} : { 'content-length': Buffer.byteLength(payload) }),
      ...sent.headers,
    },
  });
  if (payload !== undefined && sent.chunked === true) request.write(payload);
  request.end(sent.chunked === true ? undefined : payload);
  return request;
}

export async function send(socketPath: string, operation: OperationName, sent: Sent = {}): Promise<Answer> {
  const request = openRequest(socketPath, operation, sent);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once('response', resolve);
  // A refusal may come before the whole body has been taken: the broken write is then no news.
  request.on('error', (error) => reject(error));
  const response = await promise;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.statusCode ?? 0, headers: response.headers, text, json };
}

/** Writes bytes on a bare connection and reads until the kernel closes it. */
export async function sendRaw(socketPath: string, bytes: string): Promise<string> {
  const socket = connect(socketPath);
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  socket.on('error', () => undefined);
  socket.write(bytes);
  await once(socket, 'close');
  return received;
}

/** A guest's control stream: its lines as they come. */
export interface TestControl {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages
  next(): Promise<any>;
  readonly socket: Socket;
  readonly ended: Promise<void>;
}

export async function openControl(sandbox: TestSandbox): Promise<TestControl> {
  const { socketPath } = sandbox.channel;
  const greeting = await send(socketPath, 'hello', { token: sandbox.sandboxToken, body: GOOD_BODIES.hello });
  if (greeting.status !== 200) throw new Error(`hello was refused: ${greeting.text}`);
  const request = openRequest(socketPath, 'control', { token: sandbox.sandboxToken });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  request.on('error', () => undefined);
  const lines: unknown[] = [];
  const waiting: ((line: unknown) => void)[] = [];
  let rest = '';
  response.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const take = waiting.shift();
      if (take === undefined) lines.push(JSON.parse(part));
      else take(JSON.parse(part));
    }
  });
  const ended = new Promise<void>((resolve) => response.once('close', () => resolve()));
  response.on('error', () => undefined);
  return {
    status: response.statusCode ?? 0,
    socket: response.socket,
    ended,
    next: () =>
      new Promise((resolve) => {
        if (lines.length > 0) resolve(lines.shift());
        else waiting.push(resolve);
      }),
  };
}
