import { storableText } from '../capability/truncate.ts';
import type { Json } from '../json.ts';
import { ExactMatcher } from './exact.ts';
import { type Leak, type ScanOptions, scanText } from './scan.ts';

/** Stands where a secret was. */
export const REDACTED = '[redacted]';

/**
 * What happens to a find. `warn` leaves the text and tells of it, `redact` replaces the find, `block` keeps the whole result back.
 * A live secret is never less than redacted.
 */
export interface LeakTerms {
  readonly exact: 'redact' | 'block';
  readonly shapes: 'warn' | 'redact' | 'block';
}

export const DEFAULT_LEAK_TERMS: LeakTerms = { exact: 'redact', shapes: 'warn' };
/** For what only people and the audit read: nothing is written back from it, so what looks like a credential goes too. */
export const EVIDENCE_TERMS: LeakTerms = { exact: 'redact', shapes: 'redact' };

/** What was found, for the event of a call; never the value. */
export interface LeakNote {
  readonly name: string;
  readonly count: number;
  readonly action: 'warned' | 'redacted' | 'blocked';
}

/** Scrubs the texts of one result and counts what it finds. */
export class Scrubber {
  readonly #exact: ExactMatcher;
  readonly #terms: LeakTerms;
  readonly #notes = new Map<string, LeakNote>();

  constructor(secrets: readonly string[], terms: LeakTerms) {
    this.#exact = new ExactMatcher(secrets);
    this.#terms = terms;
  }

  /** True when a find asks for the whole result to be kept back. */
  get blocked(): boolean {
    return this.notes().some(({ action }) => action === 'blocked');
  }

  notes(): readonly LeakNote[] {
    return [...this.#notes.values()];
  }

  /**
   * @param options.keepShapes - shapes are counted and never replaced: what is read here may be written back
   */
  text(text: string, options: ScanOptions & { readonly keepShapes?: boolean } = {}): string {
    const stored = storableText(text);
    const leaks = scanText(stored, this.#exact, options);
    if (leaks.length === 0) return stored;
    return withoutSpans(
      stored,
      leaks.filter(({ name }) => this.#note(name, options.keepShapes === true) !== 'warned'),
    );
  }

  /** Every string of a JSON value, keys included. */
  json(value: Json, options: ScanOptions & { readonly keepShapes?: boolean } = {}): Json {
    if (typeof value === 'string') return this.text(value, options);
    if (Array.isArray(value)) return value.map((item) => this.json(item, options));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.text(key, options), this.json(item, options)]));
  }

  /** Bytes: a live secret in them is masked in place, so that lengths and what stands around it stay. Shapes are counted only. */
  bytes(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1');
    const leaks = scanText(text, this.#exact);
    const secrets = leaks.filter(({ name }) => this.#note(name, true) !== 'warned');
    if (secrets.length === 0) return bytes;
    const masked = Buffer.from(bytes);
    for (const { start, end } of secrets) masked.fill('*', start, end);
    return masked;
  }

  #note(name: string, keepShapes: boolean): LeakNote['action'] {
    const asked = name === 'secret' ? this.#terms.exact : keepShapes ? 'warn' : this.#terms.shapes;
    const action = asked === 'warn' ? 'warned' : asked === 'redact' ? 'redacted' : 'blocked';
    const key = `${name} ${action}`;
    this.#notes.set(key, { name, action, count: (this.#notes.get(key)?.count ?? 0) + 1 });
    return action;
  }
}

/** The text with a mark for every span. Spans are in order and do not overlap. */
export function withoutSpans(text: string, spans: readonly Pick<Leak, 'start' | 'end'>[]): string {
  let out = '';
  let from = 0;
  for (const { start, end } of spans) {
    out += text.slice(from, start) + REDACTED;
    from = end;
  }
  return out + text.slice(from);
}
