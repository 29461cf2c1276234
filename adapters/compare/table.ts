import { stripVTControlCharacters, styleText } from 'node:util';
import { headlineOf } from './headline.ts';
import { type CompareResults, placementLabel } from './results.ts';
import { type Row, rowsOf } from './rows.ts';

export interface TableOptions {
  /** Width of the terminal in characters; a table that does not fit becomes one list per placement. */
  readonly columns: number;
  /** False for NO_COLOR and pipes. */
  readonly color: boolean;
}

/** The results as text, with a line break at its end. No line is longer than `columns` unless a single word is. */
export function renderTable(results: CompareResults, options: TableOptions): string {
  const rows = rowsOf(results);
  const names = results.placements.map((result) => (results.engines.length > 1 ? placementLabel(result) : result.placement));
  const wide = wideTable(rows, names, options.color);
  const fits = wide.every((line) => stripVTControlCharacters(line).length <= options.columns);
  const lines = [
    ...(fits ? wide : lists(rows, names, options)),
    '',
    ...answerLines(results, options),
    ...unmeasuredLines(results, options),
  ];
  return `${lines.join('\n')}\n`;
}

const bold = (text: string, color: boolean): string => (color ? styleText('bold', text, { validateStream: false }) : text);
const dim = (text: string, color: boolean): string => (color ? styleText('dim', text, { validateStream: false }) : text);

function wideTable(rows: readonly Row[], names: readonly string[], color: boolean): readonly string[] {
  const labels = rows.map(labelOf);
  const labelWidth = Math.max(...labels.map((label) => label.length));
  const widths = names.map((name, index) => Math.max(name.length, ...rows.map((row) => row.cells[index]?.length ?? 0)));
  const line = (label: string, cells: readonly string[]): string =>
    [label.padEnd(labelWidth), ...cells.map((cell, index) => cell.padStart(widths[index] ?? 0))].join('  ').trimEnd();
  const lines = [bold(line('', names), color)];
  let group: Row['group'] | undefined;
  for (const [index, row] of rows.entries()) {
    if (group !== undefined && row.group !== group) lines.push('');
    group = row.group;
    lines.push(line(labels[index] ?? '', row.cells));
  }
  return lines;
}

const labelOf = (row: Row): string => (row.unit === '' ? row.label : `${row.label} (${row.unit})`);

/** Figure by figure below each placement's name; a pair that does not fit in one line takes two. */
function lists(rows: readonly Row[], names: readonly string[], { columns, color }: TableOptions): readonly string[] {
  const labelWidth = Math.max(...rows.map((row) => labelOf(row).length));
  return names.flatMap((name, index) => {
    const cells = rows.map((row) => row.cells[index] ?? '');
    const cellWidth = Math.max(...cells.map((cell) => cell.length));
    const fits = labelWidth + 1 + cellWidth <= columns;
    const lines = rows.flatMap((row, at) => {
      const [label, cell] = [labelOf(row), cells[at] ?? ''];
      return fits ? [`${label.padEnd(labelWidth)} ${cell.padStart(cellWidth)}`] : [label, `  ${cell}`];
    });
    return [...(index === 0 ? [] : ['']), bold(name, color), ...lines];
  });
}

function answerLines(results: CompareResults, { columns, color }: TableOptions): readonly string[] {
  const { answer, details } = headlineOf(results);
  return [...wrap(answer, columns).map((line) => bold(line, color)), ...details.flatMap((sentence) => wrap(sentence, columns))];
}

function unmeasuredLines(results: CompareResults, { columns, color }: TableOptions): readonly string[] {
  if (results.unmeasured.length === 0) return [];
  const lines = results.unmeasured.flatMap(({ field, why }) => wrap(`${field}: ${why}`, columns - 2).map((line) => `  ${line}`));
  return ['', 'not measured', ...lines].map((line) => dim(line, color));
}

/** Breaks at spaces; a word longer than a line stays whole. */
function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
