/** Longest status line and headers of one response, in bytes. */
const MAX_HEAD = 16 * 1024;
/** Longest line that tells the size of a chunk. */
const MAX_SIZE_LINE = 32;
const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

export interface ResponseSink {
  head(status: number): void;
  data(chunk: Buffer): void;
  /** The response is whole. `reusable`: the connection may carry the next request. */
  end(reusable: boolean): void;
}

/**
 * Reads one HTTP/1.1 response (RFC 9112) out of the pieces of a connection: a body by its declared length, in chunks, or up to the end of
 * the connection. Node's own client costs a guest 10 ms for its first request and three times as much for each further one; what it
 * knows beyond this (redirects, proxies, interim responses, pipelining) the membrane has no use for.
 */
export class ResponseReader {
  readonly #sink: ResponseSink;
  #kept: Buffer = Buffer.alloc(0);
  #state: 'head' | 'length' | 'size' | 'chunk' | 'chunk end' | 'trailer' | 'until close' | 'done' = 'head';
  #left = 0;
  #reusable = true;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** @throws Error for what is no response, and for bytes after its end */
  push(piece: Buffer): void {
    let bytes = this.#kept.length === 0 ? piece : Buffer.concat([this.#kept, piece]);
    for (;;) {
      const rest = this.#step(bytes);
      if (rest === undefined) break;
      bytes = rest;
    }
    this.#kept = bytes;
  }

  /** The connection has ended. @returns whether the response was whole by then */
  close(): boolean {
    if (this.#state === 'until close') this.#end();
    return this.#state === 'done';
  }

  /** Takes what it can; gives the rest, or undefined when it needs more. */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case 'head':
        return this.#head(bytes);
      case 'size':
        return this.#size(bytes);
      case 'length':
      case 'chunk':
        return this.#body(bytes);
      case 'chunk end':
      case 'trailer':
        return this.#line(bytes);
      case 'until close':
        if (bytes.length === 0) return undefined;
        this.#sink.data(bytes);
        return bytes.subarray(bytes.length);
      case 'done':
        if (bytes.length > 0) throw new Error('bytes after the end of a response');
        return undefined;
    }
  }

  #head(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(HEAD_END);
    if (end > MAX_HEAD || (end < 0 && bytes.length > MAX_HEAD)) throw new Error('the head of a response is too long');
    if (end < 0) return undefined;
    const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first)?.[1] ?? Number.NaN);
    if (!(status >= 200)) throw new Error('no response of HTTP/1.1');
    const headers = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    this.#reusable = headers.get('connection')?.toLowerCase() !== 'close';
    this.#frame(headers.get('transfer-encoding'), headers.get('content-length'));
    this.#sink.head(status);
    if (this.#state === 'length' && this.#left === 0) this.#end();
    return bytes.subarray(end + HEAD_END.length);
  }

  #frame(coding: string | undefined, length: string | undefined): void {
    if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked' || length !== undefined) throw new Error('a response with an unknown framing');
      this.#state = 'size';
    } else if (length === undefined) {
      this.#state = 'until close';
      this.#reusable = false;
    } else {
      if (!/^\d{1,15}$/.test(length)) throw new Error('a response with a malformed length');
      this.#left = Number(length);
      this.#state = 'length';
    }
  }

  #size(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(CRLF);
    if (end > MAX_SIZE_LINE || (end < 0 && bytes.length > MAX_SIZE_LINE)) throw new Error('the size of a chunk is too long');
    if (end < 0) return undefined;
    const size = bytes.toString('latin1', 0, end);
    if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new Error('a chunk with a malformed size');
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? 'trailer' : 'chunk';
    return bytes.subarray(end + CRLF.length);
  }

  #body(bytes: Buffer): Buffer | undefined {
    if (bytes.length === 0) return undefined;
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    this.#sink.data(part);
    if (this.#left === 0) {
      if (this.#state === 'chunk') this.#state = 'chunk end';
      else this.#end();
    }
    return bytes.subarray(part.length);
  }

  /** The empty line after a chunk, or after the last one; the kernel sends no trailers. */
  #line(bytes: Buffer): Buffer | undefined {
    if (bytes.length < CRLF.length) return undefined;
    if (!bytes.subarray(0, CRLF.length).equals(CRLF)) throw new Error('a chunk that does not end where it should');
    if (this.#state === 'trailer') this.#end();
    else this.#state = 'size';
    return bytes.subarray(CRLF.length);
  }

  #end(): void {
    this.#state = 'done';
    this.#sink.end(this.#reusable);
  }
}
