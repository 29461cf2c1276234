import type { ShownWarning, WarningKind } from './types.ts';

/** Reorder what stands beside them: explicit directions, embeddings, overrides, isolates. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** Take no place: format characters, joiners, tags, variation selectors, fillers. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/u;
/** Move a cursor, ring, start a sequence. Tab and line feed are shown as what they are. */
const CONTROL = /[^\P{Cc}\t\n]/u;
/** Whatever has no mark of its own on the page: also spaces that look like a space, and line ends that are none. Line feed stays. */
const HIDDEN = /[^\P{C}\n]|\p{Default_Ignorable_Code_Point}|\p{Zl}|\p{Zp}|[^\P{Zs} ]/gu;

/**
 * Text in which every character can be seen: what would be invisible, move the cursor or reorder its neighbours is written as its code
 * point, `\u{202e}`. Line ends stay.
 */
export const visible = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll('\r\n', '\n')
    .replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);

/** Text between quotes on one line; a backslash or quote of its own is escaped, so nothing in it can look like the end. */
export const quoted = (text: string): string =>
  `"${visible(text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t'))}"`;

const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER_LETTER = /(?!\p{Script=Latin})\p{L}/u;
/** Scripts that are written together with Latin letters in one word, in ordinary text: Japanese, Chinese and Korean. */
const WITH_LATIN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u;
/** Cyrillic, Greek, Armenian and Cherokee letters that look like a Latin one in common typefaces. */
const LATIN_LOOKS = /^[аеорсухіјѕԁԛԝһӏвкмнтАВЕЅІЈКМНОРСТУХԚԜαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧհոսօցՏՕᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏎᏚᏞᏢᏦ\p{N}_]+$/u;
const COMPATIBLE = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f\u2460-\u24ff]/u;

/** What a reader of `text` could overlook; `where` names the place in a sentence. */
export function warningsOf(where: string, text: string): readonly ShownWarning[] {
  const found: ShownWarning[] = [];
  const warn = (kind: WarningKind, what: string) => found.push({ kind, message: `${where} ${what}` });
  const bidi = BIDI.exec(text)?.[0];
  if (bidi !== undefined) warn('bidi_control', `holds a character that reorders text (${pointOf(bidi)})`);
  const invisible = [...text].find((character) => INVISIBLE.test(character) && !BIDI.test(character));
  if (invisible !== undefined) warn('invisible', `holds a character that cannot be seen (${pointOf(invisible)})`);
  const control = CONTROL.exec(text)?.[0];
  if (control !== undefined) warn('control_character', `holds a control character (${pointOf(control)})`);
  for (const [word] of text.matchAll(WORD)) {
    const disguised = COMPATIBLE.exec(word)?.[0];
    const other = OTHER_LETTER.exec(word)?.[0];
    if (disguised !== undefined) {
      warn('looks_like_latin', `holds letters that stand for others: ${quoted(clip(word))} (${pointOf(disguised)})`);
    } else if (other !== undefined && LATIN.test(word) && !WITH_LATIN.test(word)) {
      warn('mixed_scripts', `mixes alphabets in one word: ${quoted(clip(word))} (${pointOf(other)})`);
    } else if (other !== undefined && word.length > 1 && LATIN_LOOKS.test(word)) {
      warn('looks_like_latin', `holds a word of another alphabet that looks like Latin letters: ${quoted(clip(word))} (${pointOf(other)})`);
    } else continue;
    // One of a kind is enough to make a reader look.
    break;
  }
  return found;
}

const clip = (word: string): string => ([...word].length > 40 ? `${[...word].slice(0, 40).join('')}…` : word);
const pointOf = (character: string): string => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
