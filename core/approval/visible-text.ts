import type { ShownWarning, WarningKind } from './types.ts';

/** Reorder what stands beside them: explicit directions, embeddings, overrides, isolates. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** Take no place: format characters, joiners, tags, variation selectors, fillers. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/u;
/** Move a cursor, ring, start a sequence. Tab and line feed are shown as what they are. */
const CONTROL = /[^\P{Cc}\t\n]/u;
/** Drawn as nothing, though Unicode calls them letters and symbols: blanks of Egyptian, Braille and musical notation. */
const BLANK = /[\u2800\u{13441}\u{13442}\u{1d159}]/u;
/** Whatever has no mark of its own on the page: also spaces that look like a space, and line ends that are none. Line feed stays. */
const HIDDEN = /[^\P{C}\n]|\p{Default_Ignorable_Code_Point}|\p{Zl}|\p{Zp}|[^\P{Zs} ]|[\u2800\u{13441}\u{13442}\u{1d159}]/gu;

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
/**
 * Letters that look like a Latin one in common typefaces: of Cyrillic, Greek, Armenian and Cherokee those that do, and all of three scripts that
 * are hardly met but to deceive.
 */
const LATIN_LOOKS =
  /^[аеорсухіјѕԁԛԝһӏвкмнтАВЕЅІЈКМНОРСТУХԚԜαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧհոսօցՏՕᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏎᏚᏞᏢᏦ\uab70-\uabbf\p{Script=Lisu}\p{Script=Coptic}\p{Script=Deseret}\p{N}_]+$/u;
/** Latin letters of phonetic notation, and the i without a dot: in a command they stand for the letter they look like. */
const ODD_LATIN = /[ı\u01c0-\u01c3\u0250-\u02af\u1d00-\u1dbf\ua730\ua731\uab30-\uab6f]/u;
/** Signs that look like one that a shell, a path or an address means something by, and have no ASCII form of their own; a dash before a word too. */
const SIGN_LOOKS =
  /[\u02d0\u02d7\u02dc\u2010-\u2012\u2044\u204e\u2212\u2215-\u2217\u2219\u2223\u2236\u223c\u2758\u29f5\u29f8\u29f9\ua789]|(?<![^\s])[\u2013\u2014](?=[a-zA-Z])/u;
/** Punctuation of Chinese and Japanese text, where nothing of it stands around: resolvers and some parsers take it for the ASCII one. */
const WIDE_SIGN = /(?<![^ -~])[\u3002\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e\uff61](?![^ -~])/u;
/** Drawn across its neighbours, or more marks on one letter than any writing has. */
const OVER = /[\u0334-\u0338\u20d2-\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb]|\p{M}{4}/u;

/** In ordinary text these are what they are: an ellipsis, raised figures and ordinals, fractions, ™, №, and wide punctuation. */
const PLAIN_FORMS = /[…²³¹ªº¼½¾™№℠\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e]/u;
/** The first character that stands for ASCII in another form: full width, mathematical, raised, circled, a Roman numeral. */
const disguisedIn = (text: string): string | undefined =>
  [...text].find((one) => one > '~' && !PLAIN_FORMS.test(one) && /^[!-~]+$/.test(one.normalize('NFKC')));

/** What a reader of `text` could overlook; `where` names the place in a sentence. */
export function warningsOf(where: string, text: string): readonly ShownWarning[] {
  const found: ShownWarning[] = [];
  const warn = (kind: WarningKind, what: string) => found.push({ kind, message: `${where} ${what}` });
  const bidi = BIDI.exec(text)?.[0];
  if (bidi !== undefined) warn('bidi_control', `holds a character that reorders text (${pointOf(bidi)})`);
  const invisible = [...text].find((character) => (INVISIBLE.test(character) && !BIDI.test(character)) || BLANK.test(character));
  if (invisible !== undefined) warn('invisible', `holds a character that cannot be seen (${pointOf(invisible)})`);
  const control = CONTROL.exec(text)?.[0];
  if (control !== undefined) warn('control_character', `holds a control character (${pointOf(control)})`);
  const over = OVER.exec(text)?.[0];
  if (over !== undefined) warn('drawn_over', `holds a mark that is drawn over its neighbours (${pointOf(over)})`);
  const sign = (SIGN_LOOKS.exec(text) ?? WIDE_SIGN.exec(text))?.[0];
  if (sign !== undefined) warn('looks_like_sign', `holds a sign that looks like another: ${quoted(sign)} (${pointOf(sign)})`);
  const disguised = disguisedIn(text);
  if (disguised !== undefined)
    warn('looks_like_latin', `holds a character that stands for another: ${quoted(disguised)} (${pointOf(disguised)})`);
  for (const [word] of text.matchAll(WORD)) {
    const odd = disguised === undefined ? ODD_LATIN.exec(word)?.[0] : undefined;
    const other = OTHER_LETTER.exec(word)?.[0];
    if (odd !== undefined) {
      warn('looks_like_latin', `holds a letter that looks like another: ${quoted(clip(word))} (${pointOf(odd)})`);
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
