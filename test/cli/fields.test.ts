import { expect, it } from 'vitest';
import { printHanging } from '../../adapters/cli/fields.ts';
import { Output } from '../../adapters/cli/output.ts';

function hung(columns: number | undefined, lead: string, text: string): string[] {
  let shown = '';
  const stdout = { write: (chunk: string) => (shown += chunk), isTTY: columns !== undefined, columns };
  const out = new Output({ json: false, stdout, stderr: stdout, env: { NO_COLOR: '1' }, reader: { gone: false } });
  printHanging(out, lead, text);
  return shown.trimEnd().split('\n');
}

it('a line that is wider than the terminal goes on under its own beginning; in a pipe it stays one', () => {
  expect(hung(24, 'FAIL data  ', 'words.yaml: needs a schema')).toEqual(['FAIL data  words.yaml: needs a', '           schema']);
  expect(hung(30, 'ok   ', 'one two three four five six seven')).toEqual(['ok   one two three four five', '     six seven']);
  expect(hung(undefined, 'ok   ', 'one two three four five six seven')).toEqual(['ok   one two three four five six seven']);
});

it('further lines stand under the first, and nothing of them moves a terminal', () => {
  const lines = hung(undefined, '  ', 'a\nb\u001b[2J');
  expect(lines).toEqual(['  a', expect.stringMatching(/^ {2}b/)]);
  expect(lines.join('')).not.toContain('\u001b');
});
