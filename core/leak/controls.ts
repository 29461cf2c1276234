// Control sequences of terminals (ECMA-48), whole where they are whole. A string sequence (OSC, DCS, SOS, PM, APC) that has no end within
// 4,096 characters loses its introducer only: its text must not vanish.
const C1_STRING = '[\\x90\\x98\\x9d-\\x9f]';
const STRING = `(?:\\x1b[\\]PX^_]|${C1_STRING})[^\\x07\\x1b\\x9c]{0,4096}(?:\\x07|\\x9c|\\x1b\\\\)`;
const CSI = '(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]?';
const ESCAPE = '\\x1b[ -/]*[0-~]?';
/** Characters as ranges of code units. */
type Ranges = readonly (readonly [first: number, last: number])[];

// Controls, and characters that hide or reorder what is around them. Tab, newline, carriage return and the joiners that scripts and
// pictures are made with are text. The last two are the halves of U+E0000 to U+E0FFF, tags and further selectors.
const HIDDEN_UNITS: Ranges = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0e],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
];
const TAG = '[\\udb40-\\udb43][\\udc00-\\udfff]';
const TAG_HALVES: Ranges = [[0xdb40, 0xdb43]];
/** What a scan does not see through either: joiners and a carriage return. */
const JOINING_UNITS: Ranges = [
  [0x0d, 0x0d],
  [0x200c, 0x200d],
  [0xfe0f, 0xfe0f],
];

const inClass = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`;
const HIDDEN = `[${HIDDEN_UNITS.map(([first, last]) => `${inClass(first)}-${inClass(last)}`).join('')}]|${TAG}`;
const JOINING = '[\\u200c\\u200d\\ufe0f]|\\r(?!\\n)';

const HIDES = 1;
const JOINS = 2;
/** For each code unit what it is: looked up for every one of a text, so it is no search. */
const KINDS = new Uint8Array(0x10000);
for (const [first, last] of [...HIDDEN_UNITS, ...TAG_HALVES]) KINDS.fill(HIDES, first, last + 1);
for (const [first, last] of JOINING_UNITS) KINDS.fill(JOINS, first, last + 1);

/** Whether a text has a character of one of these kinds. */
const has = (text: string, kinds: number): boolean =>
  Buffer.byteLength(text) === text.length ? hasInAscii(text, kinds) : hasInUnits(text, kinds);

/** Four characters at a time: none of them is looked at more closely unless one is a control. */
function hasInAscii(text: string, kinds: number): boolean {
  const bytes = Buffer.from(new ArrayBuffer(Math.ceil(text.length / 4) * 4)).fill(' ', text.length);
  bytes.write(text, 'latin1');
  const words = new Uint32Array(bytes.buffer);
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] as number;
    // A byte below 0x20 borrows, 0x7f carries into the high bit, which no byte of ASCII has.
    if ((((word - 0x20202020) | (word + 0x01010101)) & 0x80808080) === 0) continue;
    for (let at = 4 * i; at < 4 * i + 4; at += 1) if (((KINDS[bytes[at] as number] as number) & kinds) !== 0) return true;
  }
  return false;
}

function hasInUnits(text: string, kinds: number): boolean {
  const bytes = Buffer.from(new ArrayBuffer(text.length * 2));
  bytes.write(text, 'utf16le');
  const units = new Uint16Array(bytes.buffer);
  for (let i = 0; i < units.length; i += 1) if (((KINDS[units[i] as number] as number) & kinds) !== 0) return true;
  return false;
}

const anything = () => new RegExp(`${STRING}|${CSI}|${ESCAPE}|${HIDDEN}`, 'g');

/**
 * Text as people may be shown it: no escape sequence, no control but tab, newline and carriage return before it, nothing that reorders or
 * hides. A backspace and a lone carriage return are taken out without acting on their neighbours, so nothing disappears behind them.
 */
export function neutralText(text: string): string {
  const plain = has(text, HIDES) ? text.replace(anything(), '') : text;
  return plain.includes('\r') ? plain.replace(/\r(?!\n)/g, '') : plain;
}

/** A copy of a text for scanning, and where each of its characters stood. */
export interface Copy {
  readonly text: string;
  /** Index in the original of the character at `index` of the copy. */
  at(index: number): number;
}

/**
 * Copies without what splits a secret and is not seen: escape sequences, controls, zero-width characters, overstrikes. In the first copy
 * sequences are gone with their text, and a backspace takes a character with it; in the second the text of a sequence stays. None when
 * there is nothing to see through.
 */
export function copiesOf(text: string): readonly Copy[] {
  if (!has(text, HIDES | JOINS)) return [];
  // Looking for what stands before a backspace means looking everywhere.
  const overstrike = text.includes('\b') ? '[^\\x08]\\x08|' : '';
  const whole = copy(text, new RegExp(`${STRING}|${overstrike}${CSI}|${ESCAPE}|${HIDDEN}|${JOINING}`, 'g'));
  // Only what is no CSI has text inside that the first copy takes and the second leaves.
  if (overstrike === '' && !OPENS.test(text)) return [whole];
  const opened = copy(text, new RegExp(`\\x1b[\\]PX^_\\\\]|${CSI}|\\x1b|${HIDDEN}|${JOINING}`, 'g'));
  return whole.text === opened.text ? [whole] : [whole, opened];
}

/** Where its characters stood is worked out when something is found in it. */
function copy(text: string, removed: RegExp): Copy {
  let places: Places | undefined;
  return {
    text: text.replace(removed, ''),
    at(index) {
      places ??= placesOf(text, removed);
      return mapped(places, index);
    },
  };
}

/** Of every piece that is left: where it starts in the copy, and where in the original. */
interface Places {
  readonly starts: readonly number[];
  readonly origins: readonly number[];
}

function placesOf(text: string, removed: RegExp): Places {
  const starts: number[] = [];
  const origins: number[] = [];
  let length = 0;
  let from = 0;
  const keep = (to: number) => {
    if (to === from) return;
    starts.push(length);
    origins.push(from);
    length += to - from;
  };
  for (const match of text.matchAll(removed)) {
    keep(match.index);
    from = match.index + match[0].length;
  }
  keep(text.length);
  return { starts, origins };
}

function mapped({ starts, origins }: Places, index: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] as number) <= index) low = middle;
    else high = middle - 1;
  }
  return (origins[low] ?? 0) + index - (starts[low] ?? 0);
}

const WHOLE = `${STRING}|(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]|\\x1b[ -/]+[0-~]|\\x1b[0-OQ-WYZ\\\\\\x60-~]`;
const BEGUN = new RegExp(`(?:(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*|(?:\\x1b[\\]PX^_]|${C1_STRING})[^\\x07\\x1b\\x9c]*\\x1b?|\\x1b[ -/]*)$`);
const OPENS = new RegExp(`\\x1b(?!\\[)|${C1_STRING}`);
/** The longest escape sequence that a cut is kept out of. */
export const SEQUENCE_CHARACTERS = 4096;

/** Start of an escape sequence that the end of `text` cuts off; its length when none is cut. Looks at the last 4,096 characters. */
export function cutSequenceStart(text: string): number {
  const from = Math.max(0, text.length - SEQUENCE_CHARACTERS);
  // A whole one is no part of another: BEL is in none.
  const at = text
    .slice(from)
    .replace(new RegExp(WHOLE, 'g'), (sequence) => '\x07'.repeat(sequence.length))
    .search(BEGUN);
  return at === -1 ? text.length : from + at;
}

/** Length of the whole escape sequence with which `text` begins; 0 when it begins with none. */
export const sequenceLength = (text: string): number => new RegExp(WHOLE, 'y').exec(text)?.[0].length ?? 0;
