import { styleText } from 'node:util';
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
  const table = sideBySide(rows, names, options) ?? lists(rows, names, options);
  const lines = [...table, '', ...answerLines(results, options), ...unmeasuredLines(results, options)];
  return `${lines.join('\n')}\n`;
}

const bold = (text: string, color: boolean): string => (color ? styleText('bold', text, { validateStream: false }) : text);
const dim = (text: string, color: boolean): string => (color ? styleText('dim', text, { validateStream: false }) : text);

/** Below this a label is broken so often that a list reads better. */
const NARROWEST_LABEL = 16;

/**
 * A column for each placement. Where the terminal is too narrow, names are broken at their hyphens first and labels at spaces then;
 * undefined where that is not enough.
 */
function sideBySide(rows: readonly Row[], names: readonly string[], { columns, color }: TableOptions): readonly string[] | undefined {
  const longestLabel = Math.max(...rows.map((row) => labelOf(row).length));
  for (const headings of [names.map((name) => [name]), names.map((name) => name.split(/(?<=[-/])/))]) {
    const widths = headings.map((parts, index) => Math.max(...parts.map(lengthOf), ...rows.map((row) => lengthOf(row.cells[index] ?? ''))));
    const room = columns - widths.reduce((sum, width) => sum + width + 2, 0);
    const whole = headings.every((parts) => parts.length === 1);
    if (room < (whole ? longestLabel : NARROWEST_LABEL)) continue;
    const packed = headings.map((parts, index) => joined(parts, widths[index] ?? 0));
    return tableLines(rows, packed, widths, Math.min(room, longestLabel), color);
  }
  return undefined;
}

/** Puts parts of a name that fit beside each other on one line. */
function joined(parts: readonly string[], width: number): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length <= width) lines[lines.length - 1] = last + part;
    else lines.push(part);
  }
  return lines;
}

const lengthOf = (text: string): number => text.length;

function tableLines(
  rows: readonly Row[],
  headings: readonly (readonly string[])[],
  widths: readonly number[],
  labelWidth: number,
  color: boolean,
): readonly string[] {
  const line = (label: string, cells: readonly string[]): string =>
    [label.padEnd(labelWidth), ...cells.map((cell, index) => cell.padStart(widths[index] ?? 0))].join('  ').trimEnd();
  const height = Math.max(...headings.map((parts) => parts.length));
  const lines = Array.from({ length: height }, (_, at) =>
    bold(
      line(
        '',
        headings.map((parts) => parts[at - height + parts.length] ?? ''),
      ),
      color,
    ),
  );
  let group: Row['group'] | undefined;
  for (const row of rows) {
    if (group !== undefined && row.group !== group) lines.push('');
    group = row.group;
    const [first = '', ...more] = wrap(labelOf(row), labelWidth - 2);
    lines.push(
      ...(labelOf(row).length <= labelWidth
        ? [line(labelOf(row), row.cells)]
        : [line(first, row.cells), ...more.map((text) => `  ${text}`)]),
    );
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
  const lines = [...Map.groupBy(results.unmeasured, ({ why }) => why)].flatMap(([why, fields]) => {
    const names = new Set(fields.map(({ field }) => fieldName(field, results)));
    return wrap(`${[...names].join(', ')}: ${why}`, columns - 2).map((line) => `  ${line}`);
  });
  return ['', 'not measured', ...lines].map((line) => dim(line, color));
}

/** A figure without the placement before it: what is missing for one reason is told once. */
function fieldName(field: string, { placements }: CompareResults): string {
  const label = placements.map((result) => `${placementLabel(result)}.`).find((prefix) => field.startsWith(prefix));
  return label === undefined ? field : field.slice(label.length);
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
