import { MembraneError } from '../../core/errors.ts';

/**
 * Parses a request body strictly: well-formed UTF-8, at most `maxDepth` levels (counted before anything is parsed: thousands of nested
 * arrays overflow the stack of whoever walks them later), no key twice in one object, no `__proto__`.
 *
 * @throws MembraneError `malformed` `body_too_deep`
 */
export function parseJsonBody(body: Uint8Array, maxDepth: number): unknown {
  const text = decode(body);
  const shape = scanJson(text, maxDepth);
  if (shape === undefined) throw new MembraneError('body_too_deep', `the body nests deeper than ${maxDepth} levels`);
  const value = parse(text);
  if (countKeys(value) !== shape.keys) throw new MembraneError('malformed', 'the body repeats a key');
  return value;
}

function decode(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new MembraneError('malformed', 'the body is not UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's own message quotes the body.
    throw new MembraneError('malformed', 'the body is not JSON');
  }
}

/**
 * Counts levels and keys of JSON text; undefined when it is too deep. In valid JSON a colon outside a string stands after a key and
 * nowhere else. Strings are jumped over with `indexOf`, so that a large output costs little.
 */
function scanJson(text: string, maxDepth: number): { readonly keys: number } | undefined {
  let depth = 0;
  let keys = 0;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (c === 0x22) {
      i = endOfString(text, i);
      if (i < 0) return { keys };
    } else if (c === 0x3a) keys += 1;
    else if (c === 0x7b || c === 0x5b) {
      depth += 1;
      if (depth > maxDepth) return undefined;
    } else if (c === 0x7d || c === 0x5d) depth -= 1;
  }
  return { keys };
}

/** Index of the quote that closes the string opened at `start`; -1 when none does (the parser will say so). */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
  }
  return -1;
}

/** Keys of the parsed value: fewer than the text has when a key came twice. The depth is bounded by now. */
function countKeys(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countKeys(item);
    return count;
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw new MembraneError('malformed', 'the body has a key that is not allowed');
    count += 1 + countKeys(item);
  }
  return count;
}
