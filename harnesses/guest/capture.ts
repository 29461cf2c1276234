import { cutSequence, LOOK_BACK, sequenceEnd } from './sequences.ts';

/** What a bounded capture kept of a stream. */
export interface Captured {
  /** Valid UTF-8 of at most the limit, the marker included. */
  readonly text: string;
  /** Bytes the stream really had. */
  readonly bytes: number;
  readonly truncated: boolean;
}

/** How much of a stream tells whether it is text. */
const SAMPLE_BYTES = 8 * 1024;
/** Shorter streams are text: nothing is won by not showing them. */
const BINARY_FROM = 64;
/** Kept beyond half the limit, to see what a cut would cut through. */
const MARGIN = LOOK_BACK;
const FIRST_BYTES = 4 * 1024;

/**
 * Keeps head and tail of a stream in about 1.5 times `limit` bytes of memory and 4 KiB, however long the stream is and in whatever pieces it comes.
 * The middle goes first: a command's first lines say what it did, its last ones how it ended.
 */
export class OutputCapture {
  readonly #limit: number;
  #head = Buffer.alloc(0);
  #headBytes = 0;
  /** The last bytes beyond the head, written round and round; made when the head is full. */
  #ring: Buffer | undefined;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = Math.max(0, limit);
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const toHead = Math.min(chunk.length, this.#limit - this.#headBytes);
    if (toHead > 0) this.#pushHead(chunk.subarray(0, toHead));
    if (toHead < chunk.length && this.#limit > 0) this.#pushTail(chunk.subarray(toHead));
  }

  #pushHead(part: Buffer): void {
    const needed = this.#headBytes + part.length;
    if (needed > this.#head.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#limit, Math.max(needed, this.#head.length * 2, FIRST_BYTES)));
      this.#head.copy(grown, 0, 0, this.#headBytes);
      this.#head = grown;
    }
    part.copy(this.#head, this.#headBytes);
    this.#headBytes = needed;
  }

  #pushTail(part: Buffer): void {
    const ring = this.#ring ?? Buffer.allocUnsafe(Math.ceil(this.#limit / 2) + MARGIN);
    this.#ring = ring;
    const last = part.subarray(Math.max(0, part.length - ring.length));
    const at = (this.#bytes - this.#limit - last.length) % ring.length;
    const fits = last.copy(ring, at);
    last.copy(ring, 0, fits);
  }

  #kept(): Buffer {
    const head = this.#head.subarray(0, this.#headBytes);
    const ring = this.#ring;
    if (ring === undefined) return head;
    const beyond = this.#bytes - this.#limit;
    if (beyond <= ring.length) return Buffer.concat([head, ring.subarray(0, beyond)]);
    const at = beyond % ring.length;
    return Buffer.concat([head, ring.subarray(at), ring.subarray(0, at)]);
  }

  /** Bytes the stream has had so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether more than a tenth of the stream's beginning is no text. */
  get binary(): boolean {
    const sample = this.#head.subarray(0, Math.min(this.#headBytes, SAMPLE_BYTES));
    if (sample.length < BINARY_FROM) return false;
    let odd = 0;
    for (const character of sample.toString('utf8')) if (ODD.test(character)) odd += 1;
    return odd > sample.length / 10;
  }

  /** About the last `bytes` bytes so far. */
  tail(bytes: number): string {
    const kept = this.#kept();
    const ring = this.#ring?.length ?? 0;
    // Before the ring stands the head, which the last bytes need not follow.
    const most = this.#bytes - this.#limit > ring ? Math.min(bytes, ring) : bytes;
    return kept.toString('utf8', sequenceEnd(kept, wholeEnd(kept, Math.max(0, kept.length - most))));
  }

  /** The stream's bytes from `from` on, of its first `to` at most, up to a boundary of characters and escape sequences. A copy. */
  start(from: number, to: number): Buffer {
    const head = this.#head.subarray(0, Math.min(this.#headBytes, to));
    return Buffer.from(head.subarray(from, Math.max(from, cutSequence(head, wholeStart(head, head.length)))));
  }

  /** The capture as text of at most `limit` bytes (never more than the limit it was made with). May be called again with a lower one. */
  render(wished = this.#limit): Captured {
    const limit = Math.min(wished, this.#limit);
    const head = this.#head.subarray(0, this.#headBytes);
    if (this.#bytes <= limit) {
      const text = head.toString('utf8');
      // A byte that is no UTF-8 becomes three: such a stream can outgrow its limit by being decoded.
      if (Buffer.byteLength(text) <= limit) return { text, bytes: this.#bytes, truncated: false };
    }
    return { text: this.#cut(head, limit), bytes: this.#bytes, truncated: true };
  }

  /** The stream for a file: its own bytes when all of it fits, else as `render` cuts it. */
  file(): { readonly body: Buffer; readonly truncated: boolean } {
    if (this.#bytes <= this.#limit) return { body: this.#kept(), truncated: false };
    return { body: Buffer.from(this.render().text), truncated: true };
  }

  #cut(head: Buffer, limit: number): string {
    const room = limit - Buffer.byteLength(marker(this.#bytes, this.#bytes));
    if (room <= 0) return fitStart(head, limit).text;
    const start = fitStart(head, Math.ceil(room / 2));
    const kept = this.#kept();
    const end = fitEnd(kept, start.used, Math.floor(room / 2));
    return start.text + marker(this.#bytes - start.used - end.used, this.#bytes) + end.text;
  }
}

const marker = (left: number, all: number): string => `\n[… ${left} of ${all} bytes left out …]\n`;

// NUL, controls that no text has (bell, backspace, escape and white space are not among them), bytes that are no UTF-8.
const ODD_CHARACTERS = '[\\0-\\x06\\x0e-\\x1a\\x1c-\\x1f\\x7f\\ufffd]';
const ODD = new RegExp(`${ODD_CHARACTERS}`);

/** The longest start of `bytes` whose text fits into `room`, on a boundary of characters and escape sequences. */
function fitStart(bytes: Buffer, room: number): { text: string; used: number } {
  for (let length = Math.min(bytes.length, room); ; ) {
    const slice = bytes.subarray(0, cutSequence(bytes, wholeStart(bytes, length)));
    const text = slice.toString('utf8');
    const size = Buffer.byteLength(text);
    if (size <= room) return { text, used: slice.length };
    length = Math.min(length - 1, Math.floor((length * room) / size));
  }
}

/** The longest end of `bytes`, from `floor` on, whose text fits into `room`, on a boundary of characters and escape sequences. */
function fitEnd(bytes: Buffer, floor: number, room: number): { text: string; used: number } {
  for (let length = Math.min(bytes.length - floor, room); ; ) {
    const slice = bytes.subarray(sequenceEnd(bytes, wholeEnd(bytes, bytes.length - length)));
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
