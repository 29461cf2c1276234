import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { CallReply, CallRequest } from '../../core/capability/types.ts';
import type { BackgroundOperation, CommandProgress, FileOperation, ToolCommand } from '../../core/ports/placement.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import type { ControlMessage, ControlReply, OperationName, PermitClose, RunContext, SteerReply } from '../../core/wire/protocol.ts';
import { OPERATION_SCHEMAS } from '../../core/wire/schemas.ts';

export interface FakeRequest {
  readonly operation: OperationName;
  readonly token: string;
  readonly body: unknown;
}

/** What a test decides; everything else has a plain answer. */
export interface FakeAnswers {
  hello?: () => { status: number; body: unknown };
  context?: () => RunContext;
  checkpoint?: () => unknown;
  call?: (request: CallRequest, token: string) => CallReply | Promise<CallReply>;
  steer?: () => SteerReply;
  closePermit?: (close: PermitClose) => Exclude<CallReply, { effect: 'permit' }>;
}

/**
 * The kernel's end of the membrane, for tests of the guest: the wire and its schemas, no policy and no ledger. A body that the wire's
 * schemas do not admit is answered 400 and kept in `faults`, which a test expects to be empty.
 */
export class FakeMembrane implements AsyncDisposable {
  readonly socketPath: string;
  readonly requests: FakeRequest[] = [];
  readonly faults: string[] = [];
  readonly answers: FakeAnswers = {};
  /** Control streams opened so far. */
  controls = 0;
  #control: ServerResponse | undefined;
  #wanted = Promise.withResolvers<void>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #replies = new Map<string, (reply: ControlReply) => void>();
  readonly #exits = new Map<string, PromiseWithResolvers<ExitClaim>>();
  readonly #ajv = new Ajv2020({ strict: false });
  #onProgress: (progress: CommandProgress) => void = () => {};
  #lastId = 0;

  private constructor(socketPath: string) {
    this.socketPath = socketPath;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async listen(dir: string): Promise<FakeMembrane> {
    const membrane = new FakeMembrane(join(dir, 'membrane.sock'));
    await new Promise<void>((resolve) => membrane.#server.listen(membrane.socketPath, resolve));
    return membrane;
  }

  /** Resolves when a guest holds its control stream. */
  ready(): Promise<void> {
    return this.#wanted.promise;
  }

  send(message: ControlMessage): void {
    this.#control?.write(`${JSON.stringify(message)}\n`);
  }

  sendLine(line: string): void {
    this.#control?.write(`${line}\n`);
  }

  /** Ends the control stream; the socket goes on listening. */
  dropControl(): Promise<void> {
    this.#wanted = Promise.withResolvers();
    this.#control?.end();
    return this.#wanted.promise;
  }

  exec(run: string, command: Partial<ToolCommand> & Pick<ToolCommand, 'argv'>): Promise<ControlReply> & { id: string } {
    return this.#ask((id) => ({ type: 'exec', id, run, command: { timeoutMs: 20_000, outputBytes: 65_536, ...command } }));
  }

  file(operation: FileOperation): Promise<ControlReply> & { id: string } {
    return this.#ask((id) => ({ type: 'file', id, operation }));
  }

  background(operation: BackgroundOperation): Promise<ControlReply> & { id: string } {
    return this.#ask((id) => ({ type: 'background', id, operation }));
  }

  /** The next progress that a guest tells of a command. */
  progressed(): Promise<CommandProgress> {
    return new Promise((resolve) => {
      this.#onProgress = resolve;
    });
  }

  /** The claim that the holder of this run token exits with. */
  exited(token: string): Promise<ExitClaim> {
    return this.#exit(token).promise;
  }

  requestsOf(operation: OperationName): readonly FakeRequest[] {
    return this.requests.filter((request) => request.operation === operation);
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #ask(message: (id: string) => ControlMessage): Promise<ControlReply> & { id: string } {
    this.#lastId += 1;
    const id = `ask-${this.#lastId}`;
    const reply = new Promise<ControlReply>((resolve) => this.#replies.set(id, resolve));
    this.send(message(id));
    return Object.assign(reply, { id });
  }

  #exit(token: string): PromiseWithResolvers<ExitClaim> {
    const known = this.#exits.get(token) ?? Promise.withResolvers<ExitClaim>();
    this.#exits.set(token, known);
    return known;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const operation = (request.url ?? '').replace('/v1/', '') as OperationName;
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    this.requests.push({ operation, token, body });
    const fault = this.#faultOf(operation, body, text.length);
    if (fault !== undefined) {
      this.faults.push(fault);
      return send(response, 400, { error: { code: 'malformed', message: fault } });
    }
    if (operation === 'control') return this.#openControl(response);
    try {
      const answer = await this.#answer(operation, token, body);
      if (operation === 'call.stream') return this.#stream(response, answer);
      send(response, operation === 'hello' ? (this.answers.hello?.().status ?? 200) : 200, answer);
    } catch (error) {
      const code = (error as { code?: string }).code ?? 'internal';
      send(response, 409, { error: { code, message: (error as Error).message } });
    }
  }

  #faultOf(operation: OperationName, body: unknown, bytes: number): string | undefined {
    const schema = OPERATION_SCHEMAS[operation]?.request;
    if (OPERATION_SCHEMAS[operation] === undefined) return `no operation ${operation}`;
    if (bytes > 1024 * 1024) return `${operation}: ${bytes} bytes`;
    if (schema === undefined || this.#ajv.validate(schema, body)) return undefined;
    return `${operation}: ${this.#ajv.errorsText()}`;
  }

  #openControl(response: ServerResponse): void {
    this.controls += 1;
    this.#control = response;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"type":"ping"}\n');
    this.#wanted.resolve();
  }

  #stream(response: ServerResponse, reply: unknown): void {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"delta":"one "}\n{"del');
    response.end(`ta":"two"}\n${JSON.stringify({ reply })}\n`);
  }

  async #answer(operation: OperationName, token: string, body: unknown): Promise<unknown> {
    const { answers } = this;
    switch (operation) {
      case 'hello':
        return answers.hello?.().body ?? { wire: 1, sandbox: 'sbx_test' };
      case 'context.get':
        return answers.context?.() ?? { run: 'run_1', thread: 'thr_1', harness: 'scripted', messages: [], local: true };
      case 'checkpoint.get':
        return { checkpoint: answers.checkpoint?.() ?? null };
      case 'steer.next':
        return answers.steer?.() ?? { messages: [], cancelled: false };
      case 'call':
      case 'call.stream':
        return (
          (await answers.call?.(body as CallRequest, token)) ?? { effect: 'denied', reasons: [{ code: 'no_answer', message: 'no answer' }] }
        );
      case 'permit.close': {
        const close = body as PermitClose;
        const result = close.outcome ?? { error: close.error ?? null };
        return answers.closePermit?.(close) ?? { effect: 'done', result, replayed: false };
      }
      case 'control.reply': {
        const reply = body as ControlReply;
        if (reply.progress !== undefined) {
          this.#onProgress(reply.progress);
          return {};
        }
        this.#replies.get(reply.id)?.(reply);
        this.#replies.delete(reply.id);
        return {};
      }
      case 'exit':
        this.#exit(token).resolve(body as ExitClaim);
        return {};
      default:
        return {};
    }
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
