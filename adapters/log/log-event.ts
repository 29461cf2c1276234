import type { KernelEvent } from '../../core/events.ts';
import type { Logger, LogLevel } from '../../core/seams/logger.ts';

const BAD = /failed|denied|refused|unknown|reclaimed/;

/** Progress is the executor's own talk, and many: only who debugs wants it. */
const levelOf = (type: KernelEvent['type']): LogLevel => (type === 'run.progress' ? 'debug' : BAD.test(type) ? 'warn' : 'info');

/** An event of the kernel as a line of the log, with its ids as fields of their own: run, thread, and of a call its permit and decision. */
export function logEvent(log: Logger, { type, cursor, atMs, tenant, thread, run, data }: KernelEvent): void {
  const { permit, decision, ...rest } = data;
  const ids = { tenant, thread, run, permit, decision };
  log[levelOf(type)]({ event: type, cursor, at_ms: atMs, ...ids, data: rest }, type);
}
