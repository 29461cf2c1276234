import { describe, expect, it } from 'vitest';
import { copiesOf, neutralText } from '../../../core/leak/controls.ts';

const TEXT_CONTROLS = ['\t', '\n'];

describe('controls', () => {
  it('each one is taken out, wherever in a text of ASCII it stands', () => {
    for (let unit = 0; unit < 0x80; unit += 1) {
      const control = String.fromCharCode(unit);
      const isText = (unit >= 0x20 && unit !== 0x7f) || TEXT_CONTROLS.includes(control);
      for (let before = 0; before < 9; before += 1) {
        for (let after = 0; after < 5; after += 1) {
          const [head, tail] = ['a'.repeat(before), '\n'.repeat(after)];
          // A carriage return before a newline is text.
          const kept = isText || (control === '\r' && after > 0) ? control : '';
          expect(neutralText(head + control + tail), `${unit} after ${before}, before ${after}`).toBe(head + kept + tail);
        }
      }
    }
  });

  it('a text without any has no copy, and each control makes one', () => {
    expect(copiesOf(' ~\t\nplain')).toEqual([]);
    for (const hidden of ['\0', '\x08', '\x1f', '\x7f', '\r', '\u200b', '\u200d', '\ufe0f', '\x9b'])
      expect(
        copiesOf(`se${hidden}cret`).map(({ text }) => text),
        JSON.stringify(hidden),
      ).toContain(hidden === '\x9b' ? 'seret' : hidden === '\x08' ? 'scret' : 'secret');
  });

  it('of colours there is one copy; of a sequence that has text inside there are two', () => {
    const [coloured, ...none] = copiesOf('a\x1b[32mb\x1b[0mc');
    expect([coloured?.text, none]).toEqual(['abc', []]);
    expect([0, 1, 2].map((index) => coloured?.at(index))).toEqual([0, 6, 11]);
    expect(copiesOf('a\x1b]0;b\x07c').map(({ text }) => text)).toEqual(['ac', 'a0;bc']);
  });
});
