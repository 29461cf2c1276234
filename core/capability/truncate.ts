import { cutSequenceStart, SEQUENCE_CHARACTERS, sequenceLength } from '../leak/controls.ts';

/**
 * Cuts text to at most `limit` bytes of UTF-8, head and tail kept, the marker inside the limit, on character boundaries and never inside
 * an escape sequence. A limit smaller than the marker keeps the head only.
 *
 * @param total - bytes of the whole, of which `text` may itself be a part; the marker tells of it
 */
export function truncateText(text: string, limit: number, total?: number): { readonly text: string; readonly truncated: boolean } {
  if (Buffer.byteLength(text) <= limit) return { text, truncated: false };
  const bytes = Buffer.from(text);
  const all = Math.max(total ?? 0, bytes.length);
  const room = limit - Buffer.byteLength(marker(all, all));
  if (room <= 0) return { text: wholeSequences(decodeHead(bytes.subarray(0, Math.max(0, limit)))), truncated: true };
  const half = Math.ceil(room / 2);
  const head = wholeSequences(decodeHead(bytes.subarray(0, half)));
  const tail = decodeTail(bytes, bytes.length - (room - half));
  return { text: head + marker(all - Buffer.byteLength(head) - Buffer.byteLength(tail), all) + tail, truncated: true };
}

const marker = (left: number, all: number): string => `\n[… ${left} of ${all} bytes left out …]\n`;

const wholeSequences = (text: string): string => text.slice(0, cutSequenceStart(text));

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Drops a character that the end of the slice cuts. */
function decodeHead(bytes: Buffer): string {
  let start = bytes.length;
  while (start > 0 && isContinuation(bytes[start - 1])) start -= 1;
  const lead = bytes[start - 1];
  if (lead === undefined) return '';
  const need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return bytes.subarray(0, bytes.length - (start - 1) >= need ? bytes.length : start - 1).toString('utf8');
}

/** The text from `start` on, without the rest of a character or of an escape sequence that `start` cuts. */
function decodeTail(bytes: Buffer, start: number): string {
  let from = start;
  while (from < bytes.length && isContinuation(bytes[from])) from += 1;
  const before = textUntil(bytes, from);
  const rest = bytes.subarray(from).toString('utf8');
  const cut = cutSequenceStart(before);
  if (cut === before.length) return rest;
  // One that has no end nearby hides nothing: its text stays.
  return rest.slice(Math.max(0, sequenceLength(before.slice(cut) + rest.slice(0, SEQUENCE_CHARACTERS)) - (before.length - cut)));
}

/** What stands before `end`, far enough back to see the beginning of a sequence. */
function textUntil(bytes: Buffer, end: number): string {
  let from = Math.max(0, end - SEQUENCE_CHARACTERS);
  while (from < end && isContinuation(bytes[from])) from += 1;
  return bytes.toString('utf8', from, end);
}

/** At most `length` characters, cut by code point: half a surrogate pair would be no text. */
export function clipText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.codePointAt(length - 2);
  return `${text.slice(0, last !== undefined && last > 0xffff ? length - 2 : length - 1)}…`;
}

/** Text as a database keeps it: NUL and lone surrogates become U+FFFD. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd');
