import { storableText } from '../../core/capability/truncate.ts';
import { ExactMatcher } from '../../core/leak/exact.ts';
import { scanText } from '../../core/leak/scan.ts';
import { withoutSpans } from '../../core/leak/scrub.ts';
import type { LogFields, Logger, LogLevel } from '../../core/seams/logger.ts';

/** Levels of a field's value that are looked into; what lies deeper is not logged. */
const DEPTH = 8;

/**
 * A log whose messages and text fields pass the leak detector first: what looks like a credential always, and the secrets that are live
 * when the line is written. Errors are looked through with their causes.
 *
 * @param secrets - those of everybody; asked for each line
 */
export function scrubbedLogger(log: Logger, secrets: () => readonly string[]): Logger {
  const scrubText = textScrubber(secrets);
  const line =
    (level: LogLevel): Logger[LogLevel] =>
    (fields, message) => {
      const scrub = scrubText();
      log[level](scrubbed(fields, scrub, DEPTH) as LogFields, scrub(message));
    };
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
}

type ScrubText = (text: string) => string;

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

function scrubbed(value: unknown, scrub: ScrubText, depth: number): unknown {
  if (typeof value === 'string') return scrub(value);
  if (value === null || typeof value !== 'object') return value;
  if (depth === 0) return '[…]';
  if (Array.isArray(value)) return value.map((item) => scrubbed(item, scrub, depth - 1));
  if (value instanceof Error) return scrubbedError(value, scrub, depth);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [scrub(key), scrubbed(item, scrub, depth - 1)]));
}

/** An error of the same class, so that a log prints it as one; the thrown one is left as it is. */
function scrubbedError(error: Error, scrub: ScrubText, depth: number): Error {
  const copy = Object.create(Object.getPrototypeOf(error)) as Error;
  for (const key of Object.getOwnPropertyNames(error)) {
    const value = scrubbed((error as unknown as Record<string, unknown>)[key], scrub, depth - 1);
    const enumerable = Object.prototype.propertyIsEnumerable.call(error, key);
    Object.defineProperty(copy, key, { value, enumerable, configurable: true, writable: true });
  }
  return copy;
}
