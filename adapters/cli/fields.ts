import { displayWidth, printable } from '../printable.ts';
import type { Output, Piece, Style } from './output.ts';
import { wrapText } from './wrap.ts';

export interface Field {
  readonly name: string;
  readonly value: string;
  readonly style?: Style | undefined;
}

/** Narrower than this a column of names leaves too little for values. */
const NARROW = 40;

/** Prints names and values as two columns, long values wrapped under their own column; on a very narrow terminal one below the other. */
export function printFields(out: Output, fields: readonly Field[]): void {
  const indent = Math.max(...fields.map(({ name }) => name.length)) + 2;
  const narrow = out.columns < NARROW;
  for (const { name, value, style } of fields) {
    const width = narrow ? out.columns : out.columns - indent;
    const lines = printable(value)
      .split('\n')
      .flatMap((line) => wrapText(line, width));
    const styled = (text: string): Piece => (style === undefined ? text : { text, style });
    if (narrow) out.line({ text: name, style: 'dim' });
    lines.forEach((line, i) => {
      if (narrow) out.line(styled(line));
      else out.line({ text: (i === 0 ? name : '').padEnd(indent), style: 'dim' }, styled(line));
    });
  }
}

/** A line behind a lead of its own: what is wider than the terminal goes on under its beginning, as do further lines. */
export function printHanging(out: Output, lead: string, text: string, styles: { readonly lead?: Style; readonly text?: Style } = {}): void {
  const styled = (piece: string, style: Style | undefined): Piece => (style === undefined ? piece : { text: piece, style });
  const indent = displayWidth(lead);
  const lines = printable(text)
    .split('\n')
    .flatMap((line) => wrapText(line, Math.max(out.columns - indent, NARROW / 2)));
  lines.forEach((line, i) => {
    out.line(styled(i === 0 ? lead : ' '.repeat(indent), styles.lead), styled(line, styles.text));
  });
}
