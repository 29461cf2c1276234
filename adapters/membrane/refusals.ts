import type { Clock } from '../../core/seams/clock.ts';
import type { MembraneService } from '../../core/wire/service.ts';

/** Refusals of one sandbox that are reported at once, and how many more each second: a flood must not flood the event log. */
const BURST = 20;
const PER_SECOND = 2;

export type ReportRefusal = (operation: string, code: string) => void;

/** @returns a function that reports refusals of one sandbox to the service, and drops what goes beyond the rate. */
export function refusalReporter(options: {
  readonly service: MembraneService;
  readonly clock: Clock;
  readonly sandbox: { readonly tenant: string; readonly user: string; readonly sandbox: string };
}): ReportRefusal {
  const { service, clock, sandbox } = options;
  let level = BURST;
  let atMs = clock.now();
  return (operation, code) => {
    const nowMs = clock.now();
    level = Math.min(BURST, level + (Math.max(0, nowMs - atMs) * PER_SECOND) / 1000);
    atMs = nowMs;
    if (level < 1) return;
    level -= 1;
    service.refused(sandbox, operation, code);
  };
}
