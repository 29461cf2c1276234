import type { Json } from '../json.ts';
import { copiesOf } from '../leak/controls.ts';
import { ExactMatcher } from '../leak/exact.ts';
import { scanText } from '../leak/scan.ts';
import { DEFAULT_LEAK_TERMS, EVIDENCE_TERMS, REDACTED, Scrubber, withoutSpans } from '../leak/scrub.ts';
import { clipText } from './truncate.ts';

export { REDACTED };

/** Replaces every live secret in every form in which it is looked for (`core/leak/forms.ts`), and every piece that is half of one or more. */
export function redactText(text: string, secrets: readonly string[]): string {
  if (secrets.length === 0) return text;
  return withoutSpans(text, scanText(text, new ExactMatcher(secrets), { shapes: false }));
}

/**
 * As `redactText` over every string of a JSON value, keys included. Text that a database would change (NUL, lone surrogates) becomes
 * U+FFFD first, so that what is stored, digested and replayed is one value.
 */
export const scrubJson = (value: Json, secrets: readonly string[]): Json =>
  new Scrubber(secrets, DEFAULT_LEAK_TERMS).json(value, { shapes: false });

export const scrubText = (text: string, secrets: readonly string[]): string =>
  new Scrubber(secrets, DEFAULT_LEAK_TERMS).text(text, { shapes: false });

/** What people and the audit read of a call (summaries, errors, the decision log): what looks like a credential goes too. */
export const evidenceText = (text: string, secrets: readonly string[]): string => new Scrubber(secrets, EVIDENCE_TERMS).text(text);
export const evidenceJson = (value: Json, secrets: readonly string[]): Json => new Scrubber(secrets, EVIDENCE_TERMS).json(value);

/** Evidence of at most `length` characters: cut after it was scrubbed, so that no cut hides what would have been found. */
export const evidenceLine = (text: string, secrets: readonly string[], length: number): string =>
  clipText(evidenceText(text, secrets), length);

/** Beyond this much held text its invisible characters are let go: a stream may be made of nothing else. */
const HELD_CHARACTERS = 64 * 1024;

/**
 * Redacts text that arrives in pieces. Holds back what a secret split over two pieces could need, escape sequences and invisible
 * characters between its characters not counted; `flush` gives the rest.
 */
export class StreamRedactor {
  readonly #exact: ExactMatcher;
  #held = '';

  constructor(secrets: readonly string[]) {
    this.#exact = new ExactMatcher(secrets);
  }

  push(piece: string): string {
    if (this.#exact.empty) return piece;
    const text = this.#held + piece;
    const spans = scanText(text, this.#exact, { shapes: false });
    let cut = this.#safeEnd(text);
    for (const { start, end } of spans) if (start < cut && end > cut) cut = start;
    this.#held = text.slice(cut);
    if (this.#held.length > HELD_CHARACTERS) this.#held = copiesOf(this.#held)[0]?.text ?? this.#held;
    return withoutSpans(
      text.slice(0, cut),
      spans.filter(({ end }) => end <= cut),
    );
  }

  flush(): string {
    const rest = this.#held;
    this.#held = '';
    return withoutSpans(rest, scanText(rest, this.#exact, { shapes: false }));
  }

  /** Where the text may be cut so that no form that more text could complete is torn. */
  #safeEnd(text: string): number {
    const hold = this.#exact.longest - 1;
    const ends = copiesOf(text).map((copy) => (copy.text.length <= hold ? 0 : copy.at(copy.text.length - hold)));
    return Math.min(Math.max(0, text.length - hold), ...ends);
  }
}
