import type { Output, Piece, Style } from './output.ts';
import { displayWidth, printableLine } from './printable.ts';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly style?: (row: Row) => Style | undefined;
}

/** Prints rows as a table; on a terminal too narrow for it, as one block per row. Prints `empty` when there are none. */
export function printTable<Row>(out: Output, columns: readonly Column<Row>[], rows: readonly Row[], empty: string): void {
  if (rows.length === 0) {
    out.note(empty);
    return;
  }
  const cells = rows.map((row) => columns.map(({ value }) => printableLine(value(row))));
  const widths = columns.map(({ title }, i) => Math.max(displayWidth(title), ...cells.map((line) => displayWidth(line[i] ?? ''))));
  const total = widths.reduce((sum, width) => sum + width + 2, -2);
  if (total <= out.columns) printRows(out, columns, rows, cells, widths);
  else printBlocks(out, columns, rows, cells);
}

function printRows<Row>(
  out: Output,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  cells: readonly (readonly string[])[],
  widths: readonly number[],
): void {
  const pad = (text: string, i: number) => (i === columns.length - 1 ? text : text + ' '.repeat((widths[i] ?? 0) - displayWidth(text) + 2));
  out.line({
    text: columns
      .map(({ title }, i) => pad(title, i))
      .join('')
      .trimEnd(),
    style: 'dim',
  });
  rows.forEach((row, r) => {
    out.line(...columns.map((column, i) => styled(pad(cells[r]?.[i] ?? '', i), column.style?.(row))));
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
