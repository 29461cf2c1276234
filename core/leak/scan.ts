import { copiesOf } from './controls.ts';
import type { ExactMatcher, Span } from './exact.ts';
import { findShapes } from './shapes.ts';

/** What was found where. `name` is `secret` for a live value, else the shape's. */
export interface Leak extends Span {
  readonly name: string;
}

export interface ScanOptions {
  /** Ends of the text that were cut from more. */
  readonly edges?: { readonly start?: boolean; readonly end?: boolean };
  /** Look for known shapes too. Default true. */
  readonly shapes?: boolean;
}

/**
 * Everything in a text that is a live secret or looks like a credential. The text is looked at as it is, and as copies from which
 * escape sequences and invisible characters are taken; what a copy shows is told by its place in the text.
 */
export function scanText(text: string, exact: ExactMatcher, { edges, shapes = true }: ScanOptions = {}): Leak[] {
  const look = (copy: string): Leak[] => [
    ...(exact.empty ? [] : exact.find(copy, edges).map((span) => ({ ...span, name: 'secret' }))),
    ...(shapes ? findShapes(copy) : []),
  ];
  if (exact.empty && !shapes) return [];
  const found = look(text);
  for (const copy of copiesOf(text)) {
    for (const { name, start, end } of look(copy.text)) found.push({ name, start: copy.at(start), end: copy.at(end - 1) + 1 });
  }
  return found.length < 2 ? found : merged(found);
}

/** Overlapping finds as one, a live secret before a shape. */
function merged(leaks: readonly Leak[]): Leak[] {
  const sorted = leaks.toSorted((a, b) => a.start - b.start || b.end - a.end);
  const out: Leak[] = [];
  for (const leak of sorted) {
    const last = out.at(-1);
    if (last === undefined || leak.start >= last.end) out.push(leak);
    else
      out[out.length - 1] = { name: last.name === 'secret' ? last.name : leak.name, start: last.start, end: Math.max(last.end, leak.end) };
  }
  return out;
}
