import { rounded } from '../../adapters/compare/quantile.ts';
import type { Figure } from './figure.ts';

const HEAD = ['figure', 'measured', 'bare', 'ratio', 'target', ''] as const;

const cell = (value: number | null): string => (value === null ? '—' : String(rounded(value)));

/** The figures as lines of a table, the missed ones marked. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ id, target, measured, baseline, ratio, met }) => [
    ...[id, cell(measured), cell(baseline), ratio === null ? '—' : `${cell(ratio)} ×`, target, met ? '' : 'MISSED'],
  ]);
  const table = [HEAD, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const numeric = new Set([1, 2, 3]);
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (numeric.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return `${table.map(line).join('\n')}\n`;
}
