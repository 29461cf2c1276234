import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../harnesses/guest/lines.ts';

describe('LineSplitter', () => {
  it('gives the same lines for every way to cut a stream', () => {
    const line = fc.string({ unit: 'grapheme', minLength: 1 }).filter((value) => !value.includes('\n'));
    fc.assert(
      fc.property(fc.array(line), fc.boolean(), fc.integer({ min: 1, max: 9 }), (lines, ended, size) => {
        const bytes = Buffer.from(lines.join('\n') + (ended ? '\n' : ''));
        const seen: string[] = [];
        const splitter = new LineSplitter((value) => seen.push(value));
        for (let at = 0; at < bytes.length; at += size) splitter.push(bytes.subarray(at, at + size));
        splitter.end();
        expect(seen).toEqual(lines);
      }),
    );
  });

  it('refuses a line beyond its bound, and only that', () => {
    const splitter = new LineSplitter(() => undefined, 10);
    splitter.push(Buffer.from('0123456789\n0123456789\n'));
    expect(() => splitter.push(Buffer.from('0123456789a'))).toThrow('longer than 10');
  });
});
