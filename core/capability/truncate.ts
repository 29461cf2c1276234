/**
 * Cuts text to at most `limit` bytes of UTF-8, head and tail kept, the marker inside the limit, on character boundaries.
 * A limit smaller than the marker keeps the head only.
 */
export function truncateText(text: string, limit: number): { readonly text: string; readonly truncated: boolean } {
  const bytes = Buffer.from(text);
  if (bytes.length <= limit) return { text, truncated: false };
  const marker = `\n[… ${bytes.length - limit} of ${bytes.length} bytes left out …]\n`;
  const room = limit - Buffer.byteLength(marker);
  if (room <= 0) return { text: decodeHead(bytes.subarray(0, limit)), truncated: true };
  const head = Math.ceil(room / 2);
  return { text: decodeHead(bytes.subarray(0, head)) + marker + decodeTail(bytes.subarray(bytes.length - (room - head))), truncated: true };
}

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

/** Drops the rest of a character that the start of the slice cuts. */
function decodeTail(bytes: Buffer): string {
  let start = 0;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return bytes.subarray(start).toString('utf8');
}

/** At most `length` characters, cut by code point: half a surrogate pair would be no text. */
export function clipText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.codePointAt(length - 2);
  return `${text.slice(0, last !== undefined && last > 0xffff ? length - 2 : length - 1)}…`;
}

/** Text as a database keeps it: NUL and lone surrogates become U+FFFD. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd');
