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

test.each([80, 60])('a terminal of %i columns still shows the placements side by side', (columns) => {
  const lines = renderTable(sampleResults(), { columns, color: false }).split('\n');
  expect(lines.slice(0, 3).map((line) => line.trim().split(/ +/).join(' '))).toEqual([
    'host-',
    'loop- disposable- persistent-',
    'shell per-run per-user',
  ]);
  expect(lines.find((line) => line.startsWith('turn p50'))).toMatch(/^turn p50 \(ms\) +41 +171 +36$/);
});

test('a terminal too narrow for columns gets one list for each placement', () => {
  const text = renderTable(sampleResults(), { columns: 48, color: false });
  expect(text).toMatch(/^host-loop-shell\nturn p50 \(ms\) +41$/m);
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
