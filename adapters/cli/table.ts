import { displayWidth, printableLine } from '../printable.ts';
import type { Output, Piece, Style } from './output.ts';
import { wrapText } from './wrap.ts';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly style?: (row: Row) => Style | undefined;
}

/** Least room in which the last column is broken over lines; with less of it blocks read better. */
const NARROWEST_LAST = 24;

/**
 * Prints rows as a table. On a terminal too narrow for it the last column is broken over lines, and where even that is too narrow each row
 * becomes a block. Prints `empty` when there are none.
 */
export function printTable<Row>(out: Output, columns: readonly Column<Row>[], rows: readonly Row[], empty: string): void {
  if (rows.length === 0) {
    out.note(empty);
    return;
  }
  const cells = rows.map((row) => columns.map(({ value }) => printableLine(value(row))));
  const widths = columns.map(({ title }, i) => Math.max(displayWidth(title), ...cells.map((line) => displayWidth(line[i] ?? ''))));
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
  const room = out.columns - before;
  const last = widths.at(-1) ?? 0;
  if (room >= Math.min(last, NARROWEST_LAST)) printRows(out, columns, rows, cells, widths, room);
  else printBlocks(out, columns, rows, cells);
}

function printRows<Row>(
  out: Output,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  cells: readonly (readonly string[])[],
  widths: readonly number[],
  room: number,
): void {
  const indent = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
  const pad = (text: string, i: number) => (i === columns.length - 1 ? text : text + ' '.repeat((widths[i] ?? 0) - displayWidth(text) + 2));
  out.line({
    text: columns
      .map(({ title }, i) => pad(title, i))
      .join('')
      .trimEnd(),
    style: 'dim',
  });
  rows.forEach((row, r) => {
    const line = cells[r] ?? [];
    const [first = '', ...more] = wrapText(line.at(-1) ?? '', room);
    const shown = [...line.slice(0, -1), first];
    out.line(...columns.map((column, i) => styled(pad(shown[i] ?? '', i), column.style?.(row))));
    for (const rest of more) out.line(' '.repeat(indent), styled(rest, columns.at(-1)?.style?.(row)));
  });
}

function printBlocks<Row>(out: Output, columns: readonly Column<Row>[], rows: readonly Row[], cells: readonly (readonly string[])[]): void {
  rows.forEach((row, r) => {
    if (r > 0) out.line('');
    columns.forEach((column, i) => {
      const cell = cells[r]?.[i] ?? '';
      if (cell !== '') out.line({ text: `${column.title}: `, style: 'dim' }, styled(cell, column.style?.(row)));
    });
  });
}

const styled = (text: string, style: Style | undefined): Piece => (style === undefined ? text : { text, style });
