import { type Form, formsOf, secretFault } from './forms.ts';

/** A part of a text, by index of its characters. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Shortest piece of a form that is taken for it at the edge of a text that was cut. */
const EDGE = 4;
/** Longest form whose pieces are looked for block by block of its own; a form shorter than this is found whole only. */
const WHOLE_BELOW = 16;

interface Needle {
  readonly form: string;
  /** Where each block stands in the form. */
  readonly blocks: readonly { readonly text: string; readonly at: number }[];
  /** Shortest piece that counts. */
  readonly needed: number;
}

/**
 * Finds live secret values in text: every form of each, and every piece that is half of it or more. So a value that a cut, a line break, a
 * file's part or a second stream has torn in two leaves less than half of itself anywhere.
 */
export class ExactMatcher {
  readonly #needles: readonly Needle[];
  /** Characters of the longest form. */
  readonly longest: number;

  /** Values that are too short or too plain to be told from ordinary text are not looked for: a broker refuses to keep such. */
  constructor(values: readonly string[]) {
    const forms = [...new Set(values)].filter((value) => secretFault(value) === undefined).flatMap((value) => formsOf(value));
    this.#needles = forms.map(needleOf);
    this.longest = Math.max(0, ...forms.map(({ text }) => text.length));
  }

  get empty(): boolean {
    return this.#needles.length === 0;
  }

  /** @param edges - which ends of the text were cut from more: pieces from four characters on count there */
  find(text: string, edges: { readonly start?: boolean; readonly end?: boolean } = {}): Span[] {
    const spans: Span[] = [];
    for (const needle of this.#needles) {
      for (const block of needle.blocks) findBlock(text, needle, block, spans);
      if (edges.end === true) addEnd(text, needle.form, spans);
      if (edges.start === true) addStart(text, needle.form, spans);
    }
    return spans;
  }

  /** Length of the longest end of `text` that more text could make a secret, or half of one, of. */
  openEnd(text: string): number {
    let longest = 0;
    for (const { form } of this.#needles) {
      for (let length = Math.min(form.length - 1, text.length); length > longest; length -= 1) {
        if (text.endsWith(form.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}

function needleOf({ text }: Form): Needle {
  if (text.length < WHOLE_BELOW) return { form: text, blocks: [{ text, at: 0 }], needed: text.length };
  const size = Math.floor(text.length / 4);
  const blocks = [0, 1, 2, 3].map((i) => ({ text: text.slice(i * size, (i + 1) * size), at: i * size }));
  return { form: text, blocks, needed: Math.ceil(text.length / 2) };
}

function findBlock(text: string, { form, needed }: Needle, block: Needle['blocks'][number], spans: Span[]): void {
  for (let at = text.indexOf(block.text); at !== -1; ) {
    let start = at;
    for (let i = block.at - 1; i >= 0 && start > 0 && text[start - 1] === form[i]; i -= 1) start -= 1;
    let end = at + block.text.length;
    for (let i = block.at + block.text.length; i < form.length && end < text.length && text[end] === form[i]; i += 1) end += 1;
    if (end - start >= needed) spans.push({ start, end });
    at = text.indexOf(block.text, at + 1);
  }
}

function addEnd(text: string, form: string, spans: Span[]): void {
  for (let length = Math.min(form.length - 1, text.length); length >= EDGE; length -= 1) {
    if (text.endsWith(form.slice(0, length))) {
      spans.push({ start: text.length - length, end: text.length });
      return;
    }
  }
}

function addStart(text: string, form: string, spans: Span[]): void {
  for (let length = Math.min(form.length - 1, text.length); length >= EDGE; length -= 1) {
    if (text.startsWith(form.slice(form.length - length))) {
      spans.push({ start: 0, end: length });
      return;
    }
  }
}
