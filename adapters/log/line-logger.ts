import type { Logger, LogLevel } from '../../core/seams/logger.ts';

/** One line per warning or error, for a command that runs a kernel for a moment: what it prints otherwise is its own. */
export function lineLogger(write: (text: string) => void): Logger {
  const line: Logger[LogLevel] = ({ run, err }, message) => {
    const detail = err instanceof Error ? (err.stack ?? err.message) : err === undefined ? '' : String(err);
    write(`outwork: ${run ?? 'kernel'}: ${message}${detail === '' ? '' : `: ${detail}`}\n`);
  };
  const nothing = () => undefined;
  return { debug: nothing, info: nothing, warn: line, error: line };
}
