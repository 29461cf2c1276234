import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { errorBody, OutworkError, PrerequisiteError, StoreError, UsageError } from '../../core/errors.ts';
import { jsonTextDepth } from '../../core/json.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { SAFETY } from '../../core/limits.ts';
import { OPERATOR_METHODS, type OperatorAnswer, type OperatorMethod, REQUEST_BYTES, requestSchema } from './operator-methods.ts';

/** Connections at once: a person's terminals and scripts, not a service. */
const CONNECTIONS = 64;

export interface OperatorServer extends AsyncDisposable {
  readonly socketPath: string;
  /** Closes the listener and every connection, and removes the socket. */
  close(): Promise<void>;
}

/**
 * Serves the operations of a kernel on a unix socket of mode 0600: `POST /v1/<operation>` with `{args: [...]}`. Who may connect is who may
 * enter the state directory, so a request needs no token; a sandbox never sees this directory.
 * A socket that nobody listens on any more is replaced.
 * @throws StoreError `state_locked` when another kernel answers there; PrerequisiteError `state_directory_unusable` when something else is
 */
export async function serveOperations(operations: KernelOperations, socketPath: string): Promise<OperatorServer> {
  await removeDeadSocket(socketPath);
  const app = build(operations);
  await app.listen({ path: socketPath });
  // Until here the directory's own mode keeps others out; narrowing the umask instead would hit every file the kernel makes meanwhile.
  chmodSync(socketPath, 0o600);
  const close = async () => {
    await app.close();
    rmSync(socketPath, { force: true });
  };
  return { socketPath, close, [Symbol.asyncDispose]: close };
}

function build(operations: KernelOperations): FastifyInstance {
  const app = Fastify({
    bodyLimit: REQUEST_BYTES,
    requestTimeout: 10_000,
    keepAliveTimeout: 60_000,
    forceCloseConnections: true,
    http: { maxHeaderSize: SAFETY.membraneHeaderBytes },
    // Fastify's defaults repair a request (convert, drop, fill in); here a request is right or refused.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false, strictTuples: false } },
  });
  app.server.maxConnections = CONNECTIONS;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, parseBody(text as string));
    } catch (error) {
      done(error as Error);
    }
  });
  for (const method of Object.keys(OPERATOR_METHODS) as OperatorMethod[]) {
    app.post<{ Body: { args: unknown[] } }>(`/v1/${method}`, { schema: { body: requestSchema(method) } }, async (request, reply) => {
      const call = operations[method] as (...args: unknown[]) => Promise<unknown>;
      // Written by hand: Fastify sends no body for undefined, and every answer of ours is one document.
      const result = await call.apply(operations, request.body.args);
      return reply.type('application/json').send(JSON.stringify({ result: result ?? null }));
    });
  }
  app.setNotFoundHandler((_request, reply) => answerError(reply, new UsageError('not_found', 'no such operation')));
  app.setErrorHandler((error, _request, reply) => answerError(reply, error));
  return app;
}

function parseBody(text: string): unknown {
  if (jsonTextDepth(text, SAFETY.membraneDepth) > SAFETY.membraneDepth)
    throw new UsageError('invalid_argument', 'the request is nested too deeply');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError('invalid_argument', 'the request is not JSON', { cause });
  }
}

function answerError(reply: { code(status: number): { send(body: OperatorAnswer): unknown } }, raised: unknown): unknown {
  const error = asOutworkError(raised);
  const area = error instanceof OutworkError ? error.name : 'Error';
  const retryable = error instanceof OutworkError && error.retryable;
  return reply.code(error instanceof OutworkError ? 400 : 500).send({ ...errorBody(error), area, retryable });
}

/** Fastify's own refusals (schema, size, content type) become ours, without its prose about the web. */
function asOutworkError(error: unknown): unknown {
  if (error instanceof OutworkError || !(error instanceof Error)) return error;
  const { statusCode, validation } = error as { statusCode?: number; validation?: readonly { instancePath: string; message?: string }[] };
  if (validation !== undefined) {
    const fault = validation[0];
    return new UsageError('invalid_argument', `${fault?.instancePath || 'request'}: ${fault?.message ?? 'is not valid'}`);
  }
  if (statusCode === 413) return new UsageError('invalid_argument', `the request is larger than ${REQUEST_BYTES} bytes`);
  return statusCode !== undefined && statusCode < 500 ? new UsageError('invalid_argument', error.message) : error;
}

async function removeDeadSocket(socketPath: string): Promise<void> {
  const stat = lstatSync(socketPath, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket())
    throw new PrerequisiteError('state_directory_unusable', `${socketPath} is not a socket`, { hint: `rm ${socketPath}` });
  if (await someoneListens(socketPath)) throw new StoreError('state_locked', 'another kernel answers on the operator socket');
  rmSync(socketPath, { force: true });
}

function someoneListens(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
