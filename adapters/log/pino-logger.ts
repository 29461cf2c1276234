import { Writable } from 'node:stream';
import { type DestinationStream, pino, stdSerializers } from 'pino';
import pretty from 'pino-pretty';
import type { Logger } from '../../core/seams/logger.ts';
import { escapeJsonText, printable, printableLine } from '../printable.ts';

export type LogThreshold = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface LogOptions {
  readonly level: LogThreshold;
  /** For people: one coloured line each. Else one JSON document per line. */
  readonly pretty: boolean;
  /** Gets whole lines. */
  readonly write: (text: string) => void;
}

/** Fields that hold a secret wherever they stand, at the top or one or two levels down. */
const SECRET_FIELDS = ['token', 'authorization', 'password', 'secret', 'cookie', 'private_key', 'privateKey'];
const REDACTED = '[redacted]';
/** Secrets by their form, wherever they stand in a line: our own bearer tokens, an Authorization header's value, a signed token. */
const SECRET_TEXT =
  /owt_[A-Za-z0-9_-]{43}|\b(?:[Bb]earer|[Bb]asic) [A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g;

/**
 * The log: pino's JSON on one stream, `time` in milliseconds, `level` a word. Known secret fields and texts that have the form of a secret
 * are replaced; no line holds a character that a terminal acts on, whatever a user or a sandbox wrote.
 */
export function pinoLogger(options: LogOptions): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  return pino(
    {
      level: options.level,
      base: null,
      redact: { paths, censor: REDACTED },
      serializers: { err: stdSerializers.err },
      formatters: { level: (label) => ({ level: label }) },
    },
    options.pretty ? prettyLines(options.write) : { write: (line: string) => options.write(clean(line)) },
  );
}

const clean = (line: string): string => escapeJsonText(line.replace(SECRET_TEXT, REDACTED));

function prettyLines(write: (text: string) => void): DestinationStream {
  const destination = new Writable({
    write(chunk, _encoding, done) {
      write(String(chunk));
      done();
    },
  });
  const printer = pretty({
    ...{ destination, sync: true, colorize: true, hideObject: true, translateTime: 'SYS:HH:MM:ss.l' },
    messageFormat: (line) => forPeople(line),
  });
  return { write: (line) => void printer.write(clean(line)) };
}

/** What a line says by itself, or what only a program needs. */
const LEFT_OUT: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'err', 'event', 'cursor', 'at_ms', 'tenant', 'thread']);

/** A message and its fields on one line; an error's stack below. The printer would write as it is what a JSON text holds escaped. */
function forPeople(line: Readonly<Record<string, unknown>>): string {
  const { msg, err, data } = line;
  const fields = { ...line, ...(typeof data === 'object' ? data : {}), data: undefined };
  const words = Object.entries(fields).flatMap(([key, value]) =>
    LEFT_OUT.has(key) || value === undefined ? [] : [`${key}=${textOf(value)}`],
  );
  const stack = (err as { stack?: string } | undefined)?.stack;
  return [printableLine([msg, ...words].join(' ')), ...(stack === undefined ? [] : [printable(stack)])].join('\n');
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
