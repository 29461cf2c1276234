import { chmod } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PrerequisiteError, SandboxError } from '../../core/errors.ts';
import type { Admission } from './admission.ts';
import type { MembraneLimits } from './limits.ts';
import type { ReportRefusal } from './refusals.ts';

export interface ListenerOptions {
  readonly socketPath: string;
  readonly limits: MembraneLimits;
  readonly admission: Admission;
  readonly refused: ReportRefusal;
  /** Gets each request that may be looked at. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Listener {
  readonly counters: { readonly requests: number; readonly bytes: number; readonly connections: number };
  /** Closes the listening socket and destroys every accepted connection, whatever became of it. */
  close(): Promise<void>;
}

interface Connection {
  /** The last request's response: one is answered before the next is read. */
  response: ServerResponse | undefined;
}

/**
 * One sandbox's listening socket. Everything here happens before a byte of a body is read or a token looked at: connections are counted,
 * pipelined requests end their connection, and each connection and request waits until the socket's bucket can pay for it, a request
 * for its declared body too.
 *
 * @throws PrerequisiteError `state_directory_unusable` (path too long); SandboxError `start_failed`
 */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { socketPath, limits, admission, refused, handle } = options;
  if (Buffer.byteLength(socketPath) > limits.socketPathBytes) {
    throw new PrerequisiteError(
      'state_directory_unusable',
      `the socket path is longer than ${limits.socketPathBytes} bytes: ${socketPath}`,
      {
        hint: 'choose a shorter state directory (--state)',
      },
    );
  }

  const connections = new Map<Socket, Connection>();
  let requests = 0;
  let closedBytes = 0;

  const admit = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.get(request.socket);
    if (connection === undefined) {
      request.socket.destroy();
      return;
    }
    if (connection.response !== undefined && !connection.response.writableFinished) {
      // A second request before the first is answered: our guest never does it, a smuggler and a flooder do.
      refused('request', 'malformed');
      request.socket.destroy();
      return;
    }
    connection.response = response;
    requests += 1;
    const leave = admission.enter(requestCost(request, limits), () => {
      response.off('close', leaveQueue);
      handle(request, response);
    });
    function leaveQueue(): void {
      leave();
    }
    response.once('close', leaveQueue);
  };

  // Importing node:http as an ES module reads all it exports, WebSocket with it, and that loads undici: 40 ms instead of 7.
  const server = process.getBuiltinModule('node:http').createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    // Idle connections are bounded by number; closing one under a guest that is just about to reuse it would lose its request.
    keepAliveTimeout: 0,
    insecureHTTPParser: false,
    requireHostHeader: false,
  });
  server.maxConnections = limits.connections;
  server.on('connection', (socket) => {
    connections.set(socket, { response: undefined });
    socket.once('close', () => {
      connections.delete(socket);
      closedBytes += socket.bytesRead + socket.bytesWritten;
    });
    // A connection is paid for as well, before its first byte is read: else garbage and a new connection each time would cost nothing.
    let paid = false;
    const leave = admission.enter(1, () => {
      paid = true;
      socket.resume();
    });
    // After the tick in which the HTTP server starts to read it, and before any byte can have come.
    process.nextTick(() => {
      if (!paid) socket.pause();
    });
    socket.once('close', leave);
  });
  server.on('drop', () => refused('connection', 'rate_limited'));
  server.on('request', admit);
  // The handler sends 100 once the token is good: nobody is invited to send a body that will not be read.
  server.on('checkContinue', admit);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const status = PARSER_STATUS[error.code ?? ''] ?? '400 Bad Request';
    if (error.code !== 'ECONNRESET') refused('request', status.startsWith('413') ? 'body_too_large' : 'malformed');
    if (socket.writable && connections.get(socket as Socket)?.response?.headersSent !== true) {
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n${PARSER_BODY}`);
    }
    socket.destroy();
  });

  await listen(server, socketPath);

  return {
    counters: {
      get requests() {
        return requests;
      },
      get bytes() {
        let bytes = closedBytes;
        for (const socket of connections.keys()) bytes += socket.bytesRead + socket.bytesWritten;
        return bytes;
      },
      get connections() {
        return connections.size;
      },
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        admission.close();
        // Our own list: Node's leaves out every socket that it no longer reads HTTP from.
        for (const socket of connections.keys()) socket.destroy();
      }),
  };
}

const PARSER_STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};
const PARSER_BODY = '{"error":{"code":"malformed","message":"the request is not well formed or came too slowly"}}';

/** One request, and one more for each further piece of a declared body. A chunked body is charged when its size is known. */
function requestCost(request: IncomingMessage, limits: MembraneLimits): number {
  const declared = Number(request.headers['content-length'] ?? 0);
  const bytes = Math.min(Number.isFinite(declared) ? declared : 0, limits.bodyBytes);
  return 1 + Math.floor(bytes / limits.bytesPerRequest);
}

async function listen(server: Server, socketPath: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(new SandboxError('start_failed', 'the membrane socket cannot be made', { cause })));
    server.listen(socketPath, resolve);
  });
  // The engine opens it to the sandbox's own executor once it stands.
  await chmod(socketPath, 0o600);
}
