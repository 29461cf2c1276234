import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../../harnesses/guest/capture.ts';

const MARKER = /\n\[… (\d+) of (\d+) bytes left out …\]\n/;

/** The bytes of a text in pieces that cut characters anywhere. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((start, i) => bytes.subarray(start, at[i] ?? bytes.length));
}

function capture(bytes: Buffer, cuts: readonly number[], limit: number): OutputCapture {
  const output = new OutputCapture(limit);
  for (const piece of pieces(bytes, cuts)) output.push(piece);
  return output;
}

const text = fc.string({ unit: 'binary', maxLength: 400 }).map((value) => value.repeat(1 + (value.length % 7)));
const cuts = fc.array(fc.nat(), { maxLength: 20 });
const limits = fc.oneof(fc.integer({ min: 0, max: 80 }), fc.integer({ min: 80, max: 3000 }));

describe('OutputCapture', () => {
  it('BL-090 keeps a whole stream that fits, however it was cut into pieces', () => {
    fc.assert(
      fc.property(text, cuts, (value, at) => {
        const bytes = Buffer.from(value);
        expect(capture(bytes, at, bytes.length).render()).toEqual({ text: value, bytes: bytes.length, truncated: false });
      }),
    );
  });

  it('BL-090 cuts any text to its limit: marker inside, whole characters, true counts, head and tail of the stream', () => {
    fc.assert(
      fc.property(text, cuts, limits, (value, at, limit) => {
        const bytes = Buffer.from(value);
        const result = capture(bytes, at, limit).render();
        expect(result.bytes).toBe(bytes.length);
        expect(result.truncated).toBe(bytes.length > limit);
        expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(Math.max(limit, 0));
        const marker = MARKER.exec(result.text);
        if (!result.truncated) return;
        if (marker === null || marker[2] !== String(bytes.length)) {
          expect(value.startsWith(result.text)).toBe(true);
          return;
        }
        const head = result.text.slice(0, marker.index);
        const tail = result.text.slice(marker.index + marker[0].length);
        expect(value.startsWith(head) && value.endsWith(tail)).toBe(true);
        expect(Number(marker[1])).toBe(bytes.length - Buffer.byteLength(head) - Buffer.byteLength(tail));
      }),
    );
  });

  it('BL-090 makes valid text of any bytes, within the limit', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), cuts, limits, (value, at, limit) => {
        const bytes = Buffer.from(value);
        const result = capture(bytes, at, limit).render();
        expect(result.text.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(limit);
        expect(result.bytes).toBe(bytes.length);
        expect(result.truncated || result.text === bytes.toString('utf8')).toBe(true);
      }),
    );
  });

  it('may be rendered again with a lower limit', () => {
    fc.assert(
      fc.property(text, cuts, limits, limits, (value, at, limit, lower) => {
        const bytes = Buffer.from(value);
        const output = capture(bytes, at, limit);
        output.render();
        expect(Buffer.byteLength(output.render(lower).text)).toBeLessThanOrEqual(Math.min(limit, lower));
      }),
    );
  });

  it('uses nearly all of its limit', () => {
    const result = capture(Buffer.from('─'.repeat(40_000)), [7, 1000, 30_001], 4096).render();
    expect(Buffer.byteLength(result.text)).toBeGreaterThan(4096 - 16);
  });

  it('keeps lone continuation bytes and a joined emoji at the limit readable', () => {
    expect(capture(Buffer.alloc(3000, 0x80), [1], 300).render().text).toMatch(/^\ufffd+\n\[… \d+ of 3000 bytes left out …\]\n\ufffd+$/);
    const family = '👨‍👩‍👧‍👦'.repeat(100);
    expect(capture(Buffer.from(family), [13], 333).render().text).not.toContain('\ufffd');
  });
});
