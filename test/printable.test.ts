import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Output } from '../adapters/cli/output.ts';
import { printTable } from '../adapters/cli/table.ts';
import { displayWidth, printable, printableJson, printableLine } from '../adapters/printable.ts';

const ESC = '\u001b';
const HOSTILE = [
  `${ESC}]0;title\u0007`,
  `${ESC}[2J${ESC}[1;1H`,
  `${ESC}]52;c;ZXZpbA==\u0007`,
  `${ESC}]8;;http://x\u0007link${ESC}]8;;\u0007`,
  '\u009b31m',
  '\u009d0;t\u009c',
  'safe\rEVIL',
  'abc\b\b\bxyz',
  '\u202egnp.exe',
  'a\u2028b',
  '\u{e0041}',
  '\u{e0000}',
  '\u007f',
];

/** Any character that may change what a terminal shows elsewhere than at the cursor. */
const acts = (text: string) =>
  /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u.test(text.replaceAll(/[\n\t]/g, ''));

describe('printable', () => {
  it.each(HOSTILE)('neutralises %j and leaves a trace of it', (text) => {
    expect(acts(text)).toBe(true);
    expect(acts(printable(text))).toBe(false);
    expect(printable(text).length).toBeGreaterThanOrEqual(text.length);
  });

  it('leaves ordinary text alone: lines, tabs, scripts, joined pictures', () => {
    const text = 'one\n\ttwo äß 漢字 \u{1f469}\u200d\u{1f4bb} नमस्ते';
    expect(printable(text)).toBe(text);
    expect(printable('a\r\nb')).toBe('a\nb');
  });

  it('no text at all survives with a character that acts', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(acts(printable(text))).toBe(false);
        expect(printableLine(text)).not.toMatch(/[\n\t]/);
        expect(printable(text).isWellFormed()).toBe(true);
      }),
    );
  });
});

describe('printableJson', () => {
  it('is the same value, and its text acts on no terminal', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), (value) => {
        const text = printableJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(acts(text)).toBe(false);
      }),
    );
    for (const text of HOSTILE) expect(JSON.parse(printableJson(text, 2))).toBe(text);
  });
});

function capture(options: { isTTY?: boolean; columns?: number; env?: Record<string, string>; json?: boolean }) {
  const text = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({
    isTTY: options.isTTY,
    columns: options.columns,
    write(chunk: string) {
      text[name] += chunk;
    },
  });
  return {
    text,
    out: new Output({
      json: options.json ?? false,
      stdout: sink('stdout'),
      stderr: sink('stderr'),
      env: options.env ?? {},
      reader: { gone: false },
    }),
  };
}

describe('Output', () => {
  it('colours a terminal only, and not with NO_COLOR or a dumb terminal', () => {
    const coloured = (options: Parameters<typeof capture>[0]) => {
      const { out, text } = capture(options);
      out.line({ text: 'x', style: 'red' });
      return text.stdout.includes(ESC);
    };
    expect(coloured({ isTTY: true })).toBe(true);
    expect(coloured({ isTTY: false })).toBe(false);
    expect(coloured({ isTTY: true, env: { NO_COLOR: '1' } })).toBe(false);
    expect(coloured({ isTTY: true, env: { TERM: 'dumb' } })).toBe(false);
  });

  it('its own styles are the only control sequences that come out', () => {
    const { out, text } = capture({ isTTY: true, columns: 500 });
    for (const hostile of HOSTILE) {
      out.line(hostile, { text: hostile, style: 'dim' });
      out.note(hostile);
      printTable(out, [{ title: 'T', value: () => hostile }], [1], 'none');
      out.error({ error: { code: 'x', message: hostile, hint: hostile } });
    }
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the sequences of our own styles
    const rest = (text.stdout + text.stderr).replaceAll(/\u001b\[\d+m/g, '');
    expect(acts(rest)).toBe(false);
  });

  it('with --json an error is one document on standard output', () => {
    const { out, text } = capture({ json: true });
    out.error({ error: { code: 'usage', message: 'm', hint: 'h' } });
    expect(JSON.parse(text.stdout)).toEqual({ error: { code: 'usage', message: 'm', hint: 'h' } });
    expect(text.stderr).toBe('');
  });
});

describe('printTable', () => {
  const rows = [
    { id: 'run_1', text: '漢字' },
    { id: 'run_22', text: 'a\nb' },
  ];
  const columns = [
    { title: 'ID', value: (row: (typeof rows)[0]) => row.id },
    { title: 'TEXT', value: (row: (typeof rows)[0]) => row.text },
    { title: 'END', value: () => 'end' },
  ];

  it('aligns columns by what a terminal shows', () => {
    const { out, text } = capture({});
    printTable(out, columns, rows, 'none');
    expect(text.stdout.trimEnd().split('\n')).toEqual(['ID      TEXT  END', 'run_1   漢字  end', 'run_22  a␊b   end']);
    expect(displayWidth('漢字')).toBe(4);
  });

  it('breaks a long last column over lines below itself, long words too', () => {
    const { out, text } = capture({ isTTY: true, columns: 40, env: { NO_COLOR: '1' } });
    const wide = [
      { title: 'ID', value: (row: (typeof rows)[0]) => row.id },
      { title: 'DETAIL', value: () => `one two three four five six /${'x'.repeat(40)}` },
    ];
    printTable(out, wide, rows.slice(0, 1), 'none');
    expect(text.stdout.trimEnd().split('\n')).toEqual([
      'ID     DETAIL',
      'run_1  one two three four five six',
      `       /${'x'.repeat(32)}`,
      `       ${'x'.repeat(8)}`,
    ]);
  });

  it('turns into blocks where the terminal is too narrow, so that no line is wrapped in the middle of a cell', () => {
    const { out, text } = capture({ isTTY: true, columns: 12, env: { NO_COLOR: '1' } });
    printTable(out, columns, rows, 'none');
    for (const line of text.stdout.trimEnd().split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(12);
    expect(text.stdout).toContain('ID: run_22\nTEXT: a␊b\nEND: end');
  });

  it('says on standard error that there is nothing', () => {
    const { out, text } = capture({});
    printTable(out, columns, [], 'no runs');
    expect(text).toEqual({ stdout: '', stderr: 'no runs\n' });
  });
});
