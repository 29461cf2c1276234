import { describe, expect, it } from 'vitest';
import { declaration, errorClasses, keyComments } from './doc-comments.ts';
import { metrics, withMetrics } from './metrics-list.ts';
import { REFERENCE_FILE, renderReference } from './reference.ts';
import { read } from './sources.ts';

describe('the reference', () => {
  it('is what the sources say today; `npm run docs` writes it', async () => {
    expect(read(REFERENCE_FILE)).toBe(await renderReference());
  });

  it('README names every metric; `npm run docs` writes the names', async () => {
    const all = await metrics();
    expect(all.length).toBeGreaterThan(10);
    expect(read('README.md')).toBe(withMetrics(read('README.md'), all));
    expect(withMetrics(read('README.md'), all.slice(1))).not.toBe(read('README.md'));
  });

  it('explains every key of the configuration and every fixed limit', () => {
    const unexplained = (text: string) =>
      ['## Configuration', '## Safety limits'].flatMap((heading) => {
        const [, rows = ''] = text.split(`${heading}\n`)[1]?.match(/^\| --- .*\n((?:\|.*\n)+)/m) ?? [];
        expect(rows.split('\n').length, heading).toBeGreaterThan(20);
        return rows.split('\n').filter((row) => row.endsWith('|  |'));
      });
    expect(unexplained(read(REFERENCE_FILE))).toEqual([]);
    // Control.
    expect(unexplained(read(REFERENCE_FILE).replace('| The agent program. |', '|  |'))).toHaveLength(1);
  });

  it('names every error class of core with its codes', () => {
    const classes = [...read('core/errors.ts').matchAll(/^export class (\w+) /gm)].map(([, name]) => name);
    expect(errorClasses(read('core/errors.ts')).map(({ name }) => name)).toEqual(classes);
    for (const { name, codes } of errorClasses(read('core/errors.ts'))) expect(codes, name).not.toEqual([]);
  });

  it('control: a changed comment, key or code would show', () => {
    const source = `export const A = {\n  /** One. */\n  one: 1,\n  two: 2,\n  /**\n   * Three\n   * lines.\n   */\n  'three.x': 3,\n} as const;\n`;
    expect([...keyComments(declaration(source, 'A'))]).toEqual([
      ['one', 'One.'],
      ['three.x', 'Three lines.'],
    ]);
    expect(() => declaration(source, 'B')).toThrow('no declaration of B');
    expect(errorClasses(`export type XErrorCode =\n  | 'a'\n  | 'b';\n/** X. */\nexport class XError extends E<XErrorCode> {}`)).toEqual([
      { name: 'XError', codes: ['a', 'b'], meaning: 'X.' },
    ]);
  });
});
