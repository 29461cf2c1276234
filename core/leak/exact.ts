import { type Form, formsOf, secretFault } from './forms.ts';

/** A part of a text, by index of its characters. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Shortest piece of a form that is taken for it at the edge of a text that was cut. */
const EDGE = 4;
/** A form shorter than this is found whole only. */
const WHOLE_BELOW = 16;
/** Characters of a gram. A piece that counts has eight characters or more, so whatever its place it holds one that begins at a multiple of four. */
const GRAM = 4;
const FILTER_BITS = 18;

interface Needle {
  readonly form: string;
  /** Shortest piece that counts. */
  readonly needed: number;
}

/** Where a gram stands in a form. */
interface Place {
  readonly needle: Needle;
  readonly at: number;
}

/**
 * Finds live secret values in text: every form of each, and every piece that is half of it or more. So a value that a cut, a line break, a
 * file's part or a second stream has torn in two leaves less than half of itself anywhere.
 *
 * One look at every fourth gram of the text, however many values there are: a filter of bits says which of them may be part of a form.
 */
export class ExactMatcher {
  readonly #needles: readonly Needle[];
  readonly #grams = new Map<number, Place[]>();
  readonly #filter: Uint32Array;
  /** Characters of the longest form. */
  readonly longest: number;

  /** Values that are too short or too plain to be told from ordinary text are not looked for: a broker refuses to keep such. */
  constructor(values: readonly string[]) {
    const forms = [...new Set(values)].filter((value) => secretFault(value) === undefined).flatMap((value) => formsOf(value));
    this.#needles = forms.map(needleOf);
    this.longest = Math.max(0, ...forms.map(({ text }) => text.length));
    this.#filter = new Uint32Array(forms.length === 0 ? 0 : 2 ** (FILTER_BITS - 5));
    for (const needle of this.#needles) this.#add(needle);
  }

  #add(needle: Needle): void {
    for (let shift = 0; shift < GRAM; shift += 1) {
      for (const [i, gram] of gramsOf(needle.form.slice(shift)).entries()) {
        const bit = bitOf(gram);
        this.#filter[bit >>> 5] = (this.#filter[bit >>> 5] as number) | (1 << (bit & 31));
        const place = { needle, at: shift + i * GRAM };
        const places = this.#grams.get(gram);
        if (places === undefined) this.#grams.set(gram, [place]);
        else places.push(place);
      }
    }
  }

  get empty(): boolean {
    return this.#needles.length === 0;
  }

  /** @param edges - which ends of the text were cut from more: pieces from four characters on count there */
  find(text: string, edges: { readonly start?: boolean; readonly end?: boolean } = {}): Span[] {
    const spans: Span[] = [];
    if (this.empty) return spans;
    const filter = this.#filter;
    const grams = gramsOf(text);
    for (let i = 0; i < grams.length; i += 1) {
      const gram = grams[i] as number;
      const bit = bitOf(gram);
      if (((filter[bit >>> 5] as number) & (1 << (bit & 31))) === 0) continue;
      for (const place of this.#grams.get(gram) ?? []) addPiece(text, i * GRAM, place, spans);
    }
    for (const { form } of this.#needles) {
      if (edges.end === true) addEnd(text, form, spans);
      if (edges.start === true) addStart(text, form, spans);
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

const needleOf = ({ text }: Form): Needle => ({ form: text, needed: text.length < WHOLE_BELOW ? text.length : Math.ceil(text.length / 2) });

/** Every four characters as one number, by the low bytes of their code units: different ones may share it. */
function gramsOf(text: string): Uint32Array {
  const count = Math.floor(text.length / GRAM);
  const bytes = Buffer.from(new ArrayBuffer(count * GRAM));
  bytes.write(text, 'latin1');
  return new Uint32Array(bytes.buffer);
}

const bitOf = (gram: number): number => Math.imul(gram, 0x9e3779b1) >>> (32 - FILTER_BITS);

function addPiece(text: string, i: number, { needle: { form, needed }, at }: Place, spans: Span[]): void {
  let start = i;
  let end = i;
  for (let j = at; j < form.length && end < text.length && text.charCodeAt(end) === form.charCodeAt(j); j += 1) end += 1;
  if (end - i < GRAM) return;
  for (let j = at - 1; j >= 0 && start > 0 && text.charCodeAt(start - 1) === form.charCodeAt(j); j -= 1) start -= 1;
  const last = spans.at(-1);
  if (end - start >= needed && (last?.start !== start || last.end !== end)) spans.push({ start, end });
}

function addEnd(text: string, form: string, spans: Span[]): void {
  const last = text.charCodeAt(text.length - 1);
  for (let length = Math.min(form.length - 1, text.length); length >= EDGE; length -= 1) {
    if (form.charCodeAt(length - 1) !== last || !text.endsWith(form.slice(0, length))) continue;
    spans.push({ start: text.length - length, end: text.length });
    return;
  }
}

function addStart(text: string, form: string, spans: Span[]): void {
  const first = text.charCodeAt(0);
  for (let length = Math.min(form.length - 1, text.length); length >= EDGE; length -= 1) {
    if (form.charCodeAt(form.length - length) !== first || !text.startsWith(form.slice(form.length - length))) continue;
    spans.push({ start: 0, end: length });
    return;
  }
}
