import type { OperationName } from '../../core/wire/protocol.ts';
import { WireError } from './errors.ts';
import { HttpPool } from './http-pool.ts';
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
  const control = new HttpPool(socketPath, CONTROL_CONNECTIONS);
  const calls = new HttpPool(socketPath, CALL_CONNECTIONS);

  /** One exchange. A success's body goes to `onData` as it comes; `onOpen` is told of one before. */
  const exchange = ({ operation, token, body, signal, onOpen, onData }: Request): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(givenUp(operation));
        return;
      }
      const refused: Buffer[] = [];
      let status = 0;
      const settled = (settle: () => void) => {
        signal?.removeEventListener('abort', onAbort);
        settle();
      };
      const pool = ON_CONTROL.has(operation) ? control : calls;
      const giveUp = pool.send(requestText(operation, token, body), {
        head: (given) => {
          status = given;
          if (status < 400) onOpen?.();
        },
        data: (chunk) => {
          if (status < 400) onData(chunk);
          else refused.push(chunk);
        },
        end: () => settled(status < 400 ? resolve : () => reject(refusal(operation, status, Buffer.concat(refused).toString('utf8')))),
        failed: (error: Error & { code?: string }) => settled(() => reject(lost(operation, error))),
      });
      function onAbort(): void {
        giveUp();
        settled(() => reject(givenUp(operation)));
      }
      signal?.addEventListener('abort', onAbort);
    });

  const lines = async (request: Omit<Request, 'onData'>, onLine: (value: unknown) => void): Promise<void> => {
    const splitter = new LineSplitter((line) => onLine(JSON.parse(line)));
    await exchange({ ...request, onData: (chunk) => splitter.push(chunk) });
    splitter.end();
  };

  return {
    async post(operation, token, body, signal) {
      const chunks: Buffer[] = [];
      await exchange({ operation, token, body: JSON.stringify(body), signal, onData: (chunk) => chunks.push(chunk) });
      const text = Buffer.concat(chunks).toString('utf8');
      return text === '' ? undefined : JSON.parse(text);
    },
    postStream: (operation, token, body, onLine, signal) => lines({ operation, token, body: JSON.stringify(body), signal }, onLine),
    control: (token, onOpen, onLine) => lines({ operation: 'control', token, onOpen }, onLine),
  };
}

interface Request {
  readonly operation: OperationName;
  readonly token: string;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  readonly onOpen?: () => void;
  readonly onData: (chunk: Buffer) => void;
}

const ON_CONTROL: ReadonlySet<OperationName> = new Set(['hello', 'control', 'control.reply']);

function requestText(operation: OperationName, token: string, body: string | undefined): string {
  const head = `/v1/${operation} HTTP/1.1\r\nhost: kernel\r\nauthorization: Bearer ${token}\r\n`;
  if (body === undefined) return `GET ${head}\r\n`;
  return `POST ${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Whether the kernel's socket is gone for good: closed, or its directory removed. */
export const isSocketGone = (error: unknown): boolean =>
  error instanceof WireError && error.status === 0 && /ENOENT|ECONNREFUSED/.test(error.message);

const givenUp = (operation: string): WireError => new WireError(0, 'cancelled', `${operation} was given up`);

const lost = (operation: string, error: Error & { code?: string }): WireError =>
  new WireError(0, 'guest_lost', `${operation}: no answer of the kernel (${error.code ?? error.message})`);

function refusal(operation: string, status: number, text: string): WireError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return new WireError(status, String(error.code), String(error.message));
  } catch {
    return new WireError(status, 'malformed', `${operation}: status ${status}`);
  }
}
