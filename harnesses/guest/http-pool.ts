import type { Socket } from 'node:net';
import { ResponseReader, type ResponseSink } from './http-response.ts';

export interface Exchange extends Omit<ResponseSink, 'end'> {
  end(): void;
  /** No whole response came. Called at most once, and not after `end`. */
  failed(error: Error): void;
}

/** One connection and the exchange it carries, if any: one request is answered before the next is sent. */
interface Connection {
  readonly socket: Socket;
  exchange: { readonly reader: ResponseReader; readonly told: Exchange } | undefined;
}

/** At most `limit` kept-alive connections to one unix socket; more requests wait in order. */
export class HttpPool {
  readonly #path: string;
  readonly #limit: number;
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<() => void>();
  #open = 0;

  constructor(socketPath: string, limit: number) {
    this.#path = socketPath;
    this.#limit = limit;
  }

  /** Sends one request, head and body in one text. @returns gives the exchange up: its connection is closed, nothing more is told */
  send(request: string, told: Exchange): () => void {
    let connection: Connection | undefined;
    const start = () => {
      this.#waiting.delete(start);
      connection = this.#take();
      this.#begin(connection, request, told);
    };
    if (this.#idle.length > 0 || this.#open < this.#limit) start();
    else this.#waiting.add(start);
    return () => {
      this.#waiting.delete(start);
      if (connection?.exchange?.told !== told) return;
      connection.exchange = undefined;
      connection.socket.destroy();
    };
  }

  #begin(connection: Connection, request: string, told: Exchange): void {
    const end = (reusable: boolean) => {
      connection.exchange = undefined;
      if (reusable) this.#idle.push(connection);
      else connection.socket.destroy();
      told.end();
      if (reusable) this.#next();
    };
    connection.exchange = {
      told,
      reader: new ResponseReader({ head: (status) => told.head(status), data: (chunk) => told.data(chunk), end }),
    };
    connection.socket.write(request);
  }

  #take(): Connection {
    let idle = this.#idle.pop();
    while (idle?.socket.destroyed) idle = this.#idle.pop();
    return idle ?? this.#connect();
  }

  #connect(): Connection {
    const socket = process.getBuiltinModule('node:net').connect({ path: this.#path });
    const connection: Connection = { socket, exchange: undefined };
    this.#open += 1;
    const fail = (error: Error) => {
      const exchange = connection.exchange;
      connection.exchange = undefined;
      socket.destroy();
      exchange?.told.failed(error);
    };
    socket.on('data', (piece: Buffer) => {
      try {
        // Without an exchange nothing was asked: whatever comes is not ours.
        if (connection.exchange === undefined) socket.destroy();
        else connection.exchange.reader.push(piece);
      } catch (error) {
        fail(error as Error);
      }
    });
    socket.on('error', fail);
    socket.on('close', () => {
      this.#open -= 1;
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      if (connection.exchange?.reader.close() === false) fail(new Error('the connection ended'));
      this.#next();
    });
    return connection;
  }

  #next(): void {
    const [start] = this.#waiting;
    if (start !== undefined && (this.#idle.length > 0 || this.#open < this.#limit)) start();
  }
}
