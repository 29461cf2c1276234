import type { Json } from '../json.ts';
import { storableText } from './truncate.ts';

/** Stands where a live secret was. */
export const REDACTED = '[redacted]';

/** Replaces every exact occurrence of a live secret, longest first, so that one secret inside another leaves no rest. */
export function redactText(text: string, secrets: readonly string[]): string {
  let out = text;
  for (const secret of byLength(secrets)) if (out.includes(secret)) out = out.replaceAll(secret, REDACTED);
  return out;
}

/**
 * As `redactText` over every string of a JSON value, keys included. Text that a database would change (NUL, lone surrogates) becomes
 * U+FFFD first, so that what is stored, digested and replayed is one value.
 */
export function scrubJson(value: Json, secrets: readonly string[]): Json {
  if (typeof value === 'string') return scrubText(value, secrets);
  if (Array.isArray(value)) return value.map((item) => scrubJson(item, secrets));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [scrubText(key, secrets), scrubJson(item, secrets)]));
}

export const scrubText = (text: string, secrets: readonly string[]): string => redactText(storableText(text), secrets);

const byLength = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length > 0).sort((a, b) => b.length - a.length);

/**
 * Redacts text that arrives in pieces. Holds back as many characters as a secret split over two pieces could need; `flush` gives the rest.
 */
export class StreamRedactor {
  readonly #secrets: readonly string[];
  readonly #hold: number;
  #tail = '';

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    this.#hold = Math.max(0, ...secrets.map((secret) => secret.length - 1));
  }

  push(piece: string): string {
    const text = redactText(this.#tail + piece, this.#secrets);
    const cut = Math.max(0, text.length - this.#hold);
    this.#tail = text.slice(cut);
    return text.slice(0, cut);
  }

  flush(): string {
    const rest = redactText(this.#tail, this.#secrets);
    this.#tail = '';
    return rest;
  }
}
