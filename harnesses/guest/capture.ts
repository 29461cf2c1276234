/** What a bounded capture kept of a stream. */
export interface Captured {
  /** Valid UTF-8 of at most the limit, the marker included. */
  readonly text: string;
  /** Bytes the stream really had. */
  readonly bytes: number;
  readonly truncated: boolean;
}

/**
 * Keeps head and tail of a stream in at most 1.5 times `limit` bytes of memory, however long the stream is.
 * The middle goes first: a command's first lines say what it did, its last ones how it ended.
 */
export class OutputCapture {
  readonly #limit: number;
  readonly #tailBytes: number;
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailHeld = 0;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = Math.max(0, limit);
    this.#tailBytes = Math.ceil(this.#limit / 2);
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const toHead = chunk.subarray(0, this.#limit - this.#headBytes);
    if (toHead.length > 0) {
      this.#head.push(toHead);
      this.#headBytes += toHead.length;
    }
    const rest = chunk.subarray(toHead.length);
    if (rest.length === 0 || this.#tailBytes === 0) return;
    this.#tail.push(rest);
    this.#tailHeld += rest.length;
    for (let first = this.#tail[0]; first !== undefined && this.#tailHeld - first.length >= this.#tailBytes; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailHeld -= first.length;
    }
  }

  /** The capture as text of at most `limit` bytes (never more than the limit it was made with). May be called again with a lower one. */
  render(wished = this.#limit): Captured {
    const limit = Math.min(wished, this.#limit);
    const head = Buffer.concat(this.#head, this.#headBytes);
    if (this.#bytes <= limit) {
      const text = head.toString('utf8');
      // A byte that is no UTF-8 becomes three: such a stream can outgrow its limit by being decoded.
      if (Buffer.byteLength(text) <= limit) return { text, bytes: this.#bytes, truncated: false };
    }
    return { text: this.#cut(head, limit), bytes: this.#bytes, truncated: true };
  }

  #cut(head: Buffer, limit: number): string {
    const room = limit - Buffer.byteLength(marker(this.#bytes, this.#bytes));
    if (room <= 0) return fitStart(head, limit).text;
    const start = fitStart(head, Math.ceil(room / 2));
    const kept = Buffer.concat([head, ...this.#tail]);
    const end = fitEnd(kept.subarray(Math.max(start.used, kept.length - Math.floor(room / 2))), Math.floor(room / 2));
    return start.text + marker(this.#bytes - start.used - end.used, this.#bytes) + end.text;
  }
}

const marker = (left: number, all: number): string => `\n[… ${left} of ${all} bytes left out …]\n`;

/** The longest start of `bytes` whose text fits into `room`, on a character boundary. */
function fitStart(bytes: Buffer, room: number): { text: string; used: number } {
  for (let length = Math.min(bytes.length, room); ; ) {
    const slice = bytes.subarray(0, wholeStart(bytes, length));
    const text = slice.toString('utf8');
    const size = Buffer.byteLength(text);
    if (size <= room) return { text, used: slice.length };
    length = Math.min(length - 1, Math.floor((length * room) / size));
  }
}

/** The longest end of `bytes` whose text fits into `room`, on a character boundary. */
function fitEnd(bytes: Buffer, room: number): { text: string; used: number } {
  for (let length = Math.min(bytes.length, room); ; ) {
    const slice = bytes.subarray(wholeEnd(bytes, bytes.length - length));
    const text = slice.toString('utf8');
    const size = Buffer.byteLength(text);
    if (size <= room) return { text, used: slice.length };
    length = Math.min(length - 1, Math.floor((length * room) / size));
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Where the last character that begins before `end` is whole; steps back over at most three continuation bytes. */
function wholeStart(bytes: Buffer, end: number): number {
  for (let at = end - 1; at >= Math.max(0, end - 4); at -= 1) {
    const lead = bytes[at];
    if (lead === undefined || isContinuation(lead)) continue;
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return at + length > end ? at : end;
  }
  return end;
}

/** The first character boundary at or after `start`: steps over at most three continuation bytes. */
function wholeEnd(bytes: Buffer, start: number): number {
  for (let at = start; at <= start + 3; at += 1) if (!isContinuation(bytes[at])) return Math.min(at, bytes.length);
  return start;
}
