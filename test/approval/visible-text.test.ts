import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoted, visible, warningsOf } from '../../core/approval/visible-text.ts';

const kinds = (text: string) => warningsOf('It', text).map(({ kind }) => kind);

describe('text that an approver reads', () => {
  it.each([
    ['a right-to-left override', 'safe\u202eexe.txt', 'safe\\u{202e}exe.txt', 'bidi_control'],
    ['an isolate', 'a\u2066b', 'a\\u{2066}b', 'bidi_control'],
    ['a zero-width space', 'rm\u200b', 'rm\\u{200b}', 'invisible'],
    ['a zero-width joiner', 'a\u200db', 'a\\u{200d}b', 'invisible'],
    ['a byte order mark', '\ufeffls', '\\u{feff}ls', 'invisible'],
    ['a soft hyphen', 'pa\u00adth', 'pa\\u{ad}th', 'invisible'],
    ['a tag', 'ls\u{e0041}', 'ls\\u{e0041}', 'invisible'],
    ['a variation selector', 'a\ufe0f', 'a\\u{fe0f}', 'invisible'],
    ['a filler', 'a\u3164b', 'a\\u{3164}b', 'invisible'],
    ['a Braille pattern without a dot', 'a\u2800b', 'a\\u{2800}b', 'invisible'],
    ['a blank of another notation', 'a\u{1d159}b', 'a\\u{1d159}b', 'invisible'],
    ['an escape sequence', '\u001b[2Jls', '\\u{1b}[2Jls', 'control_character'],
    ['a carriage return', 'rm -rf x\rls      ', 'rm -rf x\\u{d}ls      ', 'control_character'],
    ['a C1 control', '\u009b2J', '\\u{9b}2J', 'control_character'],
  ])('shows %s as its code point, and warns', (_, text, shown, kind) => {
    expect(visible(text)).toBe(shown);
    expect(kinds(text)).toContain(kind);
  });

  it.each([
    ['Cyrillic in a Latin word', 'p\u0430ypal', 'mixed_scripts'],
    ['Greek in a Latin word', 'g\u03bfogle', 'mixed_scripts'],
    ['a word that is all Cyrillic and reads as Latin', '\u0441\u043e\u0440\u0443', 'looks_like_latin'],
    ['full-width letters', '\uff43\uff55\uff52\uff4c', 'looks_like_latin'],
    ['mathematical letters', '\u{1d41c}\u{1d42e}\u{1d42b}\u{1d425}', 'looks_like_latin'],
    ['circled letters', '\u24e1\u24dc', 'looks_like_latin'],
    ['a Roman numeral', '\u217fkdir', 'looks_like_latin'],
    ['a raised letter', 's\u1d58do', 'looks_like_latin'],
    ['a phonetic letter', 'p\u0251ypal', 'looks_like_latin'],
    ['small capitals', '\ua731\u1d1c\u1d05\u1d0f', 'looks_like_latin'],
    ['an i without a dot', 'f\u0131le', 'looks_like_latin'],
    ['Lisu', '\ua4e2\ua4f4\ua4d3\ua4f3', 'looks_like_latin'],
    ['a Greek question mark', 'ls\u037e', 'looks_like_latin'],
    ['a dot that leads', 'evil\u2024com', 'looks_like_latin'],
    ['a division slash', '/home\u2215x', 'looks_like_sign'],
    ['a full-width slash among ASCII', 'bank.com\uff0f@evil.com', 'looks_like_sign'],
    ['a full stop of Japanese, which resolvers take for a dot', 'evil\u3002com', 'looks_like_sign'],
    ['a minus for a hyphen', '\u2212rf', 'looks_like_sign'],
    ['a dash for a hyphen', '\u2013rf', 'looks_like_sign'],
    ['a letter for a colon', 'http\ua789//x', 'looks_like_sign'],
    ['a mark across a letter', 'a\u0338b', 'drawn_over'],
    ['marks upon marks', 'z\u0351\u036b\u0343\u032a', 'drawn_over'],
  ])('warns of %s', (_, text, kind) => {
    expect(kinds(`run ${text} now`)).toEqual([kind]);
  });

  it.each([
    'git commit -m "naïve façade"',
    'Привет, мир',
    '東京abcと大阪',
    'emoji 🎉',
    'α and β',
    'tab\tand\nline',
    'x_1 = y2',
    '修复，完成（好）。',
    '1914–1918 – x ≤ 2² …',
    'שָׁלוֹם',
    'สวัสดีครับ',
  ])('has nothing to say of ordinary text: %s', (text) => {
    expect(kinds(text)).toEqual([]);
  });

  it('a space that is none is shown; a common one stays', () => {
    expect(visible('a b\u00a0c\u2003d\u2028e')).toBe('a b\\u{a0}c\\u{2003}d\\u{2028}e');
  });

  it('nothing inside quotes can look like their end, or like another line', () => {
    expect(quoted('a" "b\\" \n c\t')).toBe('"a\\" \\"b\\\\\\" \\n c\\t"');
  });

  it('whatever comes in, what comes out has no character that hides or acts, and different texts stay different between quotes', () => {
    const hostile = fc.string({
      unit: fc.oneof(
        fc.constantFrom('\u202e', '\u200b', '\u001b', '\\', '"', '\n', '\r', 'u', '{', '}', '2', '0', 'e'),
        fc.string({ unit: 'binary', maxLength: 1 }),
      ),
      maxLength: 20,
    });
    fc.assert(
      fc.property(hostile, hostile, (a, b) => {
        expect(quoted(a)).toMatch(/^[^\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]*$/u);
        if (a.toWellFormed() !== b.toWellFormed()) expect(quoted(a)).not.toBe(quoted(b));
      }),
      { numRuns: 2000 },
    );
  });
});
