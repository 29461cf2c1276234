import type { ErrorBody } from '../../core/errors.ts';
import { printable, printableJson } from '../printable.ts';

/** What a command writes to: a stream of the process, or a double. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';
const SGR: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

/** A piece of a line: text, or text with a style. */
export type Piece = string | { readonly text: string; readonly style: Style };

/**
 * A command's output. Without `--json` results go to standard output as text for people; with it standard output is one JSON document (or
 * one per line for a stream), and everything else is on standard error in both cases. All text passes `printable`: the only control
 * sequences that come out are the styles of this file.
 */
export class Output {
  readonly json: boolean;
  readonly #reader: { readonly gone: boolean };
  readonly #stdout: Sink;
  readonly #stderr: Sink;
  readonly #env: { readonly [name: string]: string | undefined };

  constructor(options: {
    readonly json: boolean;
    readonly stdout: Sink;
    readonly stderr: Sink;
    readonly env: { readonly [name: string]: string | undefined };
    /** Set when whoever read standard output has gone. */
    readonly reader: { readonly gone: boolean };
  }) {
    this.json = options.json;
    this.#reader = options.reader;
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
    this.#env = options.env;
  }

  /** True once the reader of standard output has gone: a command that streams then ends. */
  get closed(): boolean {
    return this.#reader.gone;
  }

  /** Columns of standard output; unbounded when it is no terminal. */
  get columns(): number {
    return this.#columnsOf(this.#stdout);
  }

  /** As `columns`, of standard error. */
  get noteColumns(): number {
    return this.#columnsOf(this.#stderr);
  }

  /** The one JSON document of a command. */
  document(value: unknown): void {
    this.#write(`${printableJson(value, 2)}\n`);
  }

  /** One line of a JSON stream. */
  record(value: unknown): void {
    this.#write(`${printableJson(value)}\n`);
  }

  /** A line for people on standard output. */
  line(...pieces: readonly Piece[]): void {
    this.#write(`${render(pieces, this.#colours(this.#stdout))}\n`);
  }

  /** Text made by a renderer of ours, which styles it itself and neutralises what it was given. */
  styled(render: (color: boolean, columns: number) => string): void {
    this.#write(render(this.#colours(this.#stdout), this.columns));
  }

  /** A line for people on standard error: progress, notes. */
  note(...pieces: readonly Piece[]): void {
    this.#stderr.write(`${render(pieces, this.#colours(this.#stderr))}\n`);
  }

  /** The end of a command that failed: the JSON document, or a line and its hint on standard error. */
  error({ error }: ErrorBody): void {
    if (this.json) {
      this.record({ error });
      return;
    }
    this.note({ text: 'error', style: 'red' }, `: ${error.message} (${error.code})`);
    if (error.hint !== undefined) this.note({ text: 'hint', style: 'bold' }, `: ${error.hint}`);
  }

  #columnsOf(sink: Sink): number {
    const given = Number.parseInt(this.#env.COLUMNS ?? '', 10);
    if (sink.isTTY) return sink.columns ?? (given > 0 ? given : 80);
    return given > 0 ? given : Number.POSITIVE_INFINITY;
  }

  #write(text: string): void {
    if (!this.closed) this.#stdout.write(text);
  }

  #colours(sink: Sink): boolean {
    return sink.isTTY === true && (this.#env.NO_COLOR ?? '') === '' && this.#env.TERM !== 'dumb';
  }
}

function render(pieces: readonly Piece[], colours: boolean): string {
  return pieces
    .map((piece) => {
      if (typeof piece === 'string') return printable(piece);
      const text = printable(piece.text);
      return colours ? `\u001b[${SGR[piece.style]}m${text}\u001b[0m` : text;
    })
    .join('');
}
