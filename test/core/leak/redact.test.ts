import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evidenceLine, evidenceText, REDACTED, redactText, StreamRedactor, scrubJson } from '../../../core/capability/redact.ts';
import { truncateText } from '../../../core/capability/truncate.ts';
import { copiesOf, cutSequenceStart, neutralText } from '../../../core/leak/controls.ts';
import { ExactMatcher } from '../../../core/leak/exact.ts';
import { formsOf, secretFault } from '../../../core/leak/forms.ts';

const SECRET = 'Zq3vN8rT1xK6wB9yL2mP5sD7fG4hJ0cV';
const BINARY_SECRET = 'pä"ss\\wörd/+= %41\n\tend';

/** Longest piece of any form of a secret in a text. */
function longestPiece(text: string, secret: string): number {
  let longest = 0;
  for (let start = 0; start < secret.length; start += 1) {
    let end = start + longest + 1;
    while (end <= secret.length && text.includes(secret.slice(start, end))) {
      longest = end - start;
      end += 1;
    }
  }
  return longest;
}

const secrets = fc
  .string({ unit: fc.constantFrom(...'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMN0123456789+/=_-."\\ '), minLength: 16, maxLength: 60 })
  .filter((value) => new Set(value).size >= 10);
const around = fc.string({ unit: 'grapheme', maxLength: 60 });

describe('exact values of live secrets', () => {
  it.each([SECRET, BINARY_SECRET, 'short8ch'])('are found in every form: %j', (secret) => {
    for (const { text } of formsOf(secret)) expect(redactText(`before ${text} after`, [secret])).toBe(`before ${REDACTED} after`);
  });

  it('are found in base64 whatever stands before and after them', () => {
    fc.assert(
      fc.property(secrets, around, around, (secret, before, after) => {
        const text = Buffer.from(before + secret + after).toString('base64');
        const out = redactText(text, [secret]);
        expect(out).toContain(REDACTED);
        expect(Buffer.from(out.replaceAll(REDACTED, ''), 'base64').toString('utf8')).not.toContain(secret);
        expect(redactText(text.replaceAll('+', '-').replaceAll('/', '_'), [secret])).toContain(REDACTED);
      }),
    );
  });

  it('(control) another value of the same length stays', () => {
    const other = SECRET.split('').reverse().join('');
    for (const { text } of formsOf(other)) expect(redactText(text, [SECRET])).toBe(text);
  });

  it('the longer of two is taken whole, and one inside another leaves no rest', () => {
    expect(redactText(`x${SECRET}y`, [SECRET.slice(0, 16), SECRET])).toBe(`x${REDACTED}y`);
  });

  it('BL-092 of a value torn in two at any place, neither sink keeps half of it', () => {
    for (let k = 1; k < SECRET.length; k += 1) {
      const [out, err] = [redactText(`a ${SECRET.slice(0, k)}`, [SECRET]), redactText(`${SECRET.slice(k)} b`, [SECRET])];
      expect(longestPiece(out, SECRET) + longestPiece(err, SECRET)).toBeLessThan(SECRET.length / 2 + 3);
      const both = redactText(JSON.stringify({ stdout: SECRET.slice(0, k), stderr: SECRET.slice(k) }), [SECRET]);
      expect(longestPiece(both, SECRET)).toBeLessThan(SECRET.length / 2 + 1);
    }
  });

  it('at the edges of what was cut from more, shorter pieces count too', () => {
    const exact = new ExactMatcher([SECRET]);
    expect(exact.find(`text ${SECRET.slice(0, 6)}`, { end: true })).toEqual([{ start: 5, end: 11 }]);
    expect(exact.find(`${SECRET.slice(-6)} text`, { start: true })).toEqual([{ start: 0, end: 6 }]);
    expect(exact.find(`text ${SECRET.slice(0, 6)}`)).toEqual([]);
  });

  it('BL-096 a value that ordinary text is full of is not looked for, and can be refused when it is stored', () => {
    for (const value of ['{', 'a', 'abc', 'aaaaaaaaaaaa', '1111111111']) {
      expect(secretFault(value)).toBeDefined();
      expect(redactText(`{ "a": "abc aaaaaaaaaaaa 1111111111" }`, [value])).toBe(`{ "a": "abc aaaaaaaaaaaa 1111111111" }`);
    }
    expect(secretFault(SECRET)).toBeUndefined();
  });

  it('keys of objects are text too', () => {
    expect(scrubJson({ [SECRET]: [SECRET, 1, null] }, [SECRET])).toEqual({ [REDACTED]: [REDACTED, 1, null] });
  });
});

describe('text that hides what it shows', () => {
  const middle = SECRET.slice(0, 10);
  const rest = SECRET.slice(10);
  it.each([
    ['a colour', '\x1b[0m'],
    ['a hyperlink', '\x1b]8;;http://x\x07'],
    ['a title', '\x1b]0;title\x1b\\'],
    ['an eight-bit sequence', '\u009b31m'],
    ['a device string', '\x1bPq#0\x1b\\'],
    ['a zero-width space', '\u200b'],
    ['a byte order mark', '\ufeff'],
    ['an override of direction', '\u202e'],
    ['an overstrike', 'X\b'],
    ['a lone carriage return', '\r'],
    ['a NUL', '\0'],
    ['a tag character', '\u{e0041}'],
    ['a joiner', '\u200d'],
    ['an unterminated sequence', '\x1b['],
  ])('BL-094 a secret split by %s is found', (_, splitter) => {
    const out = redactText(`a ${middle}${splitter}${rest} b`, [SECRET]);
    expect(longestPiece(neutralText(out), SECRET)).toBeLessThan(SECRET.length / 2);
    expect(out).toContain(REDACTED);
  });

  it('BL-094 a secret inside the text of a sequence is found', () => {
    expect(redactText(`\x1b]52;c;${Buffer.from(SECRET).toString('base64')}\x07`, [SECRET])).toContain(REDACTED);
    expect(redactText(`\x1b]8;;http://h/${middle}\u200b${rest}\x07link`, [SECRET])).not.toContain(middle);
  });

  it('BL-094 what people see has no control but tab and newline, whatever it was made of', () => {
    const pieces = fc.constantFrom(
      '\x1b',
      '[',
      ']',
      '0',
      ';',
      'm',
      '\x07',
      '\\',
      '\u009b',
      '\u009d',
      'P',
      'x',
      '\n',
      '\t',
      '\r',
      '\u202e',
      '\u200b',
      'ä',
      '\x1b[1m',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const out = neutralText(parts.join(''));
        expect(out.replaceAll('\r\n', '')).not.toMatch(/(?![\n\t])[\p{Cc}\u202e\u200b]/u);
      }),
    );
  });

  it('text without any of that stays as it is', () => {
    for (const text of ['plain', 'ä\n\t—“”', '👨‍👩‍👧', 'a\r\nb', 'नमस्ते']) {
      expect(neutralText(text)).toBe(text);
    }
    expect(copiesOf('plain\n\ttext')).toEqual([]);
  });
});

describe('a stream in pieces', () => {
  it('BL-092 gives the same as the whole, however it is cut', () => {
    fc.assert(
      fc.property(around, around, fc.array(fc.nat(200), { maxLength: 12 }), fc.boolean(), (before, after, cuts, hidden) => {
        const text = `${before}${hidden ? SECRET.split('').join('\x1b[0m') : SECRET}${after}${SECRET}`;
        const at = [...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b);
        const redactor = new StreamRedactor([SECRET]);
        const out = [0, ...at].map((start, i) => redactor.push(text.slice(start, at[i] ?? text.length))).join('') + redactor.flush();
        expect(longestPiece(neutralText(out), SECRET)).toBeLessThan(SECRET.length / 2);
        expect(out.split(REDACTED).length).toBeGreaterThanOrEqual(3);
        expect(out.startsWith(before)).toBe(true);
      }),
    );
  });

  it('holds back only as long as it must, and gives the rest at its end', () => {
    const redactor = new StreamRedactor([SECRET]);
    const text = 'x'.repeat(1000);
    expect(text.length - redactor.push(text).length).toBeLessThan(200);
    expect(redactor.push(SECRET.slice(0, 8)) + redactor.flush()).toMatch(new RegExp(`${SECRET.slice(0, 8)}$`));
  });
});

describe('evidence', () => {
  it('BL-098 argv and errors lose what looks like a credential, and are cut after that', () => {
    const token = `ghp_${'q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0o'}`;
    expect(evidenceText(`git clone https://${token}@git.example.test/o/r failed`, [])).toBe(
      `git clone https://${REDACTED}@git.example.test/o/r failed`,
    );
    const line = evidenceLine(`${'x'.repeat(380)} ${token}`, [], 400);
    expect(line).not.toContain('ghp_');
    expect(line.length).toBeLessThanOrEqual(400);
  });
});

describe('cutting', () => {
  it('BL-090 holds any limit, marker inside, valid text, with the count of the whole', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 3000 }), fc.nat(4000), (text, limit) => {
        const out = truncateText(text, limit);
        expect(Buffer.byteLength(out.text)).toBeLessThanOrEqual(limit);
        expect(out.text.isWellFormed()).toBe(true);
        expect(out.truncated).toBe(Buffer.byteLength(text) > limit);
      }),
    );
    expect(truncateText('x'.repeat(4106), 4096).text.length).toBeLessThanOrEqual(4096);
    expect(truncateText('x'.repeat(2000), 1024, 9000).text).toMatch(/\[… \d+ of 9000 bytes left out …\]/);
  });

  it('leaves every character that is in no sequence, whatever bytes it is made of', () => {
    // In UTF-8 both end in bytes that, alone, introduce a sequence.
    const text = 'ě11111111111111111111mН2 😀3\x07'.repeat(100);
    for (let limit = 200; limit < 260; limit += 1) {
      const [head = '', tail = ''] = truncateText(text, limit).text.split(/\n\[….*\]\n/);
      expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      expect(Buffer.byteLength(head + tail)).toBeGreaterThan(limit - 52);
    }
  });

  it('leaves no broken escape sequence', () => {
    const long = `\x1b]8;;http://example.test/${'a'.repeat(900)}\x07link\x1b]8;;\x07`.repeat(20);
    for (let limit = 1500; limit < 4000; limit += 37)
      expect(neutralText(truncateText(long, limit).text)).toMatch(/^(link)*\n\[….*\]\n(link)*$/);
    const text = '\x1b[38;5;200mred\x1b]8;;http://example.test/a/long/one\x07link\x1b]8;;\x07\x1b[0m'.repeat(200);
    for (let limit = 200; limit < 400; limit += 1) {
      const [head = '', tail = ''] = truncateText(text, limit).text.split(/\n\[….*\]\n/);
      expect(cutSequenceStart(head)).toBe(head.length);
      expect(neutralText(head).replace(/red|link/g, '')).toMatch(/^[a-z]{0,4}$/);
      expect(tail).not.toMatch(/^[0-9;]+m|^;;|^http/);
    }
  });
});
