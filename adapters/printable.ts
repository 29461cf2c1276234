// Everything a terminal may act on or that hides or reorders text: controls (C0, C1, DEL), format characters (bidirectional overrides,
// zero-width marks), line separators, the whole block of tags, assigned or not. Tab and newline stay, and the joiners that scripts and pictures are made with.
const DANGEROUS = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{e0000}-\u{e007f}]/gu;

/**
 * Text of a user, a model or a sandbox as a person may see it: no character of it moves the cursor, changes the title, pastes, or reorders
 * its neighbours. What is taken out stays visible as a picture or an escape.
 */
export function printable(text: string): string {
  return text.toWellFormed().replaceAll('\r\n', '\n').replace(DANGEROUS, picture);
}

/** As `printable`, on one line. */
export const printableLine = (text: string): string => printable(text).replaceAll('\n', '\u240a').replaceAll('\t', ' ');

function picture(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** JSON for a terminal or a program: the same value, with every character that a terminal may act on written as an escape. */
export function printableJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent) ?? 'null';
  // What is below U+0020 is escaped already; a newline that stands here is our own indentation.
  return text.replace(DANGEROUS, (character) => character.split('').map(jsonEscape).join(''));
}

/** JSON text with every character that a terminal may act on written as an escape; the value stays the same. Line ends stay. */
export const escapeJsonText = (text: string): string =>
  text.replace(DANGEROUS, (character) => character.split('').map(jsonEscape).join(''));

const jsonEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Columns that a text takes: two for wide characters and pictures, none for marks and joiners. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) width += WIDTHLESS.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

const WIDTHLESS = /^(?:\p{M}|\p{Cf})$/u;
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u;
