export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/**
 * Where the kernel says what no run can carry. Fields hold ids and codes (`run`, `permit`, `decision`, `err`), never a secret; an adapter
 * redacts all the same. A logger never throws.
 */
export type Logger = Readonly<Record<LogLevel, (fields: LogFields, message: string) => void>>;

export interface LogFields {
  readonly run?: string | undefined;
  /** An error with its stack. */
  readonly err?: unknown;
  readonly [field: string]: unknown;
}
