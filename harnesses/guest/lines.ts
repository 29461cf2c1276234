/** Splits a byte stream into lines of UTF-8; the last one needs no newline. A line beyond `maxBytes` is an error. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #bytes = 0;
  readonly #onLine: (line: string) => void;
  readonly #maxBytes: number;

  constructor(onLine: (line: string) => void, maxBytes = 4 * 1024 * 1024) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      this.end();
    }
    this.#keep(chunk.subarray(start));
  }

  /** Hands out what is left. */
  end(): void {
    const line = this.#parts.length === 1 ? this.#parts[0]?.toString('utf8') : Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#bytes = 0;
    if (line !== undefined && line !== '') this.#onLine(line);
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) throw new Error(`A line is longer than ${this.#maxBytes} bytes`);
    this.#parts.push(part);
  }
}
