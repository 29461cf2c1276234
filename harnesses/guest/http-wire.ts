import type { IncomingMessage } from 'node:http';
import type { OperationName } from '../../core/wire/protocol.ts';
import { WireError } from './errors.ts';
import { LineSplitter } from './lines.ts';

/** Together below the membrane's bound of connections a sandbox. The control stream takes one of the first for good. */
const CONTROL_CONNECTIONS = 3;
const CALL_CONNECTIONS = 12;

/** The membrane's operations over its unix socket. */
export interface Wire {
  /** @throws WireError with the kernel's code; status 0 and code `guest_lost` when no answer came, `cancelled` after an abort */
  post(operation: OperationName, token: string, body: unknown, signal?: AbortSignal): Promise<unknown>;
  /** As `post`; the response is a stream of JSON lines. Resolves at its end. */
  postStream(operation: OperationName, token: string, body: unknown, onLine: (value: unknown) => void, signal?: AbortSignal): Promise<void>;
  /** The control stream. `onOpen` is told when the kernel has accepted it; resolves when it ends. */
  control(token: string, onOpen: () => void, onLine: (value: unknown) => void): Promise<void>;
}

/** Keep-alive over few connections: replies to the kernel never wait behind a model's answer. */
export function createWire(socketPath: string): Wire {
  const http = process.getBuiltinModule('node:http');
  const agents = {
    control: new http.Agent({ keepAlive: true, maxSockets: CONTROL_CONNECTIONS }),
    call: new http.Agent({ keepAlive: true, maxSockets: CALL_CONNECTIONS }),
  };

  const open = (
    operation: OperationName,
    token: string,
    body: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const onControl = operation === 'hello' || operation === 'control' || operation === 'control.reply';
      const headers: Record<string, string | number> = { authorization: `Bearer ${token}` };
      if (body !== undefined) {
        headers['content-type'] = 'application/json';
        headers['content-length'] = Buffer.byteLength(body);
      }
      const request = http.request({
        socketPath,
        path: `/v1/${operation}`,
        method: body === undefined ? 'GET' : 'POST',
        headers,
        agent: onControl ? agents.control : agents.call,
        ...(signal === undefined ? {} : { signal }),
      });
      request.on('response', resolve);
      request.on('error', (error) => reject(lost(operation, error, signal)));
      request.end(body);
    });

  const send = async (
    operation: OperationName,
    token: string,
    body: string | undefined,
    signal?: AbortSignal,
  ): Promise<IncomingMessage> => {
    const response = await open(operation, token, body, signal);
    const status = response.statusCode ?? 0;
    if (status < 400) return response;
    throw refusal(operation, status, await read(operation, response, signal));
  };

  return {
    async post(operation, token, body, signal) {
      const text = await read(operation, await send(operation, token, JSON.stringify(body), signal), signal);
      return text === '' ? undefined : JSON.parse(text);
    },
    async postStream(operation, token, body, onLine, signal) {
      await readLines(operation, await send(operation, token, JSON.stringify(body), signal), onLine, signal);
    },
    async control(token, onOpen, onLine) {
      const response = await send('control', token, undefined);
      onOpen();
      await readLines('control', response, onLine, undefined);
    },
  };
}

/** Whether the kernel's socket is gone for good: closed, or its directory removed. */
export const isSocketGone = (error: unknown): boolean =>
  error instanceof WireError && error.status === 0 && /ENOENT|ECONNREFUSED/.test(error.message);

const lost = (operation: string, error: Error & { code?: string }, signal: AbortSignal | undefined): WireError =>
  signal?.aborted
    ? new WireError(0, 'cancelled', `${operation} was given up`)
    : new WireError(0, 'guest_lost', `${operation}: no answer of the kernel (${error.code ?? error.message})`);

function refusal(operation: string, status: number, text: string): WireError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return new WireError(status, String(error.code), String(error.message));
  } catch {
    return new WireError(status, 'malformed', `${operation}: status ${status}`);
  }
}

function read(operation: string, response: IncomingMessage, signal: AbortSignal | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    response.on('error', (error) => reject(lost(operation, error, signal)));
  });
}

function readLines(
  operation: string,
  response: IncomingMessage,
  onLine: (value: unknown) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const lines = new LineSplitter((line) => onLine(JSON.parse(line)));
    const guarded = (step: () => void) => {
      try {
        step();
      } catch (error) {
        reject(error);
        response.destroy();
      }
    };
    response.on('data', (chunk: Buffer) => guarded(() => lines.push(chunk)));
    response.on('end', () => {
      guarded(() => lines.end());
      resolve();
    });
    response.on('error', (error) => reject(lost(operation, error, signal)));
  });
}
