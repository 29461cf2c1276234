import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { renderTable } from '../../adapters/compare/table.ts';
import { sampleResults } from './sample-results.ts';

const widest = (text: string): number => Math.max(...text.split('\n').map((line) => stripVTControlCharacters(line).length));

test('a wide terminal gets one table with a column for each placement', () => {
  const text = renderTable(sampleResults(), { columns: 100, color: false });
  expect(text.split('\n')[0]).toMatch(/^ +host-loop-shell +disposable-per-run +persistent-per-user$/);
  expect(text).toMatch(/^turn p50 \(ms\) +41 +171 +36$/m);
  expect(text).toMatch(/^kill to resume \(ms\) +30,512 +— +192$/m);
});

test('no line is longer than the terminal is wide', () => {
  for (const columns of [48, 60, 80, 100])
    expect(widest(renderTable(sampleResults(), { columns, color: true }))).toBeLessThanOrEqual(columns);
});

test('without colour there is no control sequence, with colour there is', () => {
  expect(renderTable(sampleResults(), { columns: 80, color: false })).not.toContain('\u001b');
  expect(renderTable(sampleResults(), { columns: 80, color: true })).toContain('\u001b[1m');
});

test('what was not measured is named with its reason', () => {
  expect(renderTable(sampleResults(), { columns: 120, color: false })).toContain('  newCli: this version has no credential recipes');
});
