import { storableText } from '../../core/capability/truncate.ts';
import { ExactMatcher } from '../../core/leak/exact.ts';
import { scanText } from '../../core/leak/scan.ts';
import { withoutSpans } from '../../core/leak/scrub.ts';
import type { LogFields, Logger, LogLevel } from '../../core/seams/logger.ts';

/** Levels of a field's value that are looked into; what lies deeper is not logged. */
const DEPTH = 8;
/** Values of one line that are looked at. An error may drag half of the process along, and that in circles. */
const VALUES = 500;
/** In place of what is too deep or too much. */
const LEFT_OUT = '[…]';
/** In place of a line that cannot be freed of secrets: the broker does not tell them, or a value cannot be read. */
const WITHHELD = 'a line of the log is withheld: it could not be freed of secrets';

/**
 * A log whose messages and text fields pass the leak detector first: what looks like a credential always, and the secrets that are live
 * when the line is written. Errors are looked through with their causes. To log never fails: a line that cannot be scrubbed is withheld.
 *
 * @param secrets - those of everybody; asked for each line
 */
export function scrubbedLogger(log: Logger, secrets: () => readonly string[]): Logger {
  const scrubText = textScrubber(secrets);
  const line =
    (level: LogLevel): Logger[LogLevel] =>
    (fields, message) =>
      log[level](...lineOf(scrubText, fields, message));
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
}

type ScrubText = (text: string) => string;

function lineOf(scrubText: () => ScrubText, fields: LogFields, message: string): [LogFields, string] {
  try {
    const scrub = scrubText();
    return [new Fields(scrub).scrubbed(fields, DEPTH) as LogFields, scrub(message)];
  } catch {
    return [{}, WITHHELD];
  }
}

/** The matcher is made anew only when other secrets are live. */
function textScrubber(secrets: () => readonly string[]): () => ScrubText {
  let known: readonly string[] = [];
  let exact = new ExactMatcher(known);
  const scrub: ScrubText = (text) => {
    const stored = storableText(text);
    return withoutSpans(stored, scanText(stored, exact));
  };
  return () => {
    const now = secrets();
    if (now.length !== known.length || now.some((value, at) => value !== known[at])) {
      known = [...now];
      exact = new ExactMatcher(known);
    }
    return scrub;
  };
}

/** The fields of one line. */
class Fields {
  readonly #scrub: ScrubText;
  #left = VALUES;

  constructor(scrub: ScrubText) {
    this.#scrub = scrub;
  }

  scrubbed(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.#scrub(value);
    if (value === null || typeof value !== 'object') return value;
    if (depth === 0) return LEFT_OUT;
    if (Array.isArray(value)) return this.#some(value).map((item) => this.scrubbed(item, depth - 1));
    if (value instanceof Error) return this.#error(value, depth);
    return Object.fromEntries(this.#some(Object.keys(value)).map((key) => [this.#scrub(key), this.#member(value, key, depth)]));
  }

  /** An error of the same class, so that a log prints it as one; the thrown one is left as it is. */
  #error(error: Error, depth: number): Error {
    const copy = Object.create(Object.getPrototypeOf(error)) as Error;
    for (const key of this.#some(Object.getOwnPropertyNames(error))) {
      const value = this.#member(error, key, depth);
      const enumerable = Object.prototype.propertyIsEnumerable.call(error, key);
      Object.defineProperty(copy, key, { value, enumerable, configurable: true, writable: true });
    }
    return copy;
  }

  #member(holder: object, key: string, depth: number): unknown {
    return this.scrubbed((holder as Readonly<Record<string, unknown>>)[key], depth - 1);
  }

  /** As many of them as there is room for in the line. */
  #some<Item>(items: readonly Item[]): readonly Item[] {
    const some = items.slice(0, this.#left);
    this.#left -= some.length;
    return some;
  }
}
