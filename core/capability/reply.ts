import type { Approval } from '../approval/types.ts';
import type { NewEvent } from '../events.ts';
import type { LeakNote } from '../leak/scrub.ts';
import type { CallRow, RecordedOutcome } from '../ports/store.ts';
import type { Gate } from '../run/types.ts';
import type { CallReply, CallScope } from './types.ts';

/** What a ledger row says: to the caller, to a person at a gate, and to the event log. */

export type FinalReply = Exclude<CallReply, { effect: 'permit' }>;

export function replyOf(row: CallRow, replayed: boolean): FinalReply {
  const { outcome } = row;
  if (row.state === 'unknown') return { effect: 'parked', gate: unknownGate(row) };
  if (outcome?.kind === 'result') return { effect: 'done', result: outcome.result, replayed };
  if (outcome?.kind === 'denied') return { effect: 'denied', reasons: outcome.reasons };
  return { effect: 'done', result: { error: { code: outcome?.code ?? 'internal', message: outcome?.message ?? '' } }, replayed };
}

export const unknownGate = (row: CallRow): Gate => ({
  kind: 'unknown',
  ref: row.id,
  reason: `It is not known whether this was carried out: ${row.capability} ${row.summary}`,
});

export const approvalGate = ({ id, capability }: Approval): Gate => ({
  kind: 'approval',
  ref: id,
  reason: `A person has to approve this: ${capability}`,
});

export const credentialGate = ({ recipe, hint }: { readonly recipe: string; readonly hint: string }): Gate => ({
  kind: 'credential',
  ref: recipe,
  reason: `A credential is missing: ${recipe}. ${hint}`,
});

/** An event of a run. */
export const eventOf = (scope: Pick<CallScope, 'tenant' | 'thread' | 'run'>, type: NewEvent['type'], data: NewEvent['data']): NewEvent => ({
  type,
  tenant: scope.tenant,
  thread: scope.thread,
  run: scope.run,
  data,
});

/** What was found in a result, for the event of its call: names and numbers, never a value. */
export const leaksOf = (leaks: readonly LeakNote[]): NewEvent['data'] =>
  leaks.length === 0 ? {} : { leaks: leaks.map((note) => ({ ...note })) };

/** How a call ended, for its event: no output. */
export function summaryOf(outcome: RecordedOutcome): NewEvent['data'] {
  if (outcome.kind === 'error') return { error: outcome.code };
  if (outcome.kind === 'result' && outcome.result !== null && typeof outcome.result === 'object' && 'exitCode' in outcome.result) {
    const { exitCode, signal, timedOut, wallMs } = outcome.result as {
      exitCode: number | null;
      signal: string | null;
      timedOut: boolean;
      wallMs: number;
    };
    return { exit_code: exitCode, signal, timed_out: timedOut, wall_ms: Math.round(wallMs) };
  }
  return {};
}
