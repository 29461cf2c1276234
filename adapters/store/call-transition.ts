import { StoreError } from '../../core/errors.ts';
import type { CallRow, CallState, CallStore, OpenCall, OpenResult, RecordedOutcome } from '../../core/ports/store.ts';
import type { AttemptRef } from '../../core/run/types.ts';

/**
 * What an existing row answers to `open` (S5); undefined when the row is `prepared` and may be handed over again. A row that is
 * `dispatched` under an older attempt should have been judged: it counts as unknown.
 */
export function answerOf(row: CallRow, ref: AttemptRef, call: Pick<OpenCall, 'argsDigest' | 'capability'>): OpenResult | undefined {
  if (row.argsDigest !== call.argsDigest || row.capability !== call.capability) return { kind: 'nondeterministic', row };
  switch (row.state) {
    case 'done':
      return { kind: 'recorded', row };
    case 'unknown':
      return { kind: 'unknown', row };
    case 'dispatched':
      return { kind: row.fence === ref.fence ? 'in_flight' : 'unknown', row };
    case 'prepared':
      return undefined;
  }
}

/**
 * A call is opened with a permit (it is handed over), an outcome (it is refused), an ask or a gate (it waits for a person, or for
 * something else): with exactly one of them.
 * @throws StoreError `permit_expired`
 */
export function requireOpenable(call: OpenCall): void {
  if ([call.permit, call.outcome, call.ask, call.gate].filter((way) => way !== undefined).length !== 1)
    throw new TypeError('A call opens with a permit, with an outcome, with an ask or with a gate');
  if (call.approval !== undefined && call.permit === undefined) throw new TypeError('An approval is used by a call that is handed over');
  if (call.permit !== undefined && call.nowMs > call.permit.deadlineMs) {
    throw new StoreError('permit_expired', 'The deadline of the permit has passed');
  }
}

/**
 * S6. Whether an existing permit may end its call now.
 * @throws StoreError `conflict` `permit_expired`
 */
export function requireClosable(
  permit: { readonly open: boolean; readonly deadlineMs: number },
  close: Pick<Parameters<CallStore['close']>[1], 'state' | 'effect' | 'nowMs'>,
): void {
  if (close.state === 'unknown' && close.effect !== undefined) throw new TypeError('A call whose end is not known has no effect');
  if (!permit.open) throw new StoreError('conflict', 'The permit is closed already');
  if (close.state === 'done' && close.nowMs > permit.deadlineMs) {
    throw new StoreError('permit_expired', 'The deadline of the permit has passed');
  }
}

/** The state of a row that has just been opened. */
export const openedState = ({ permit, outcome }: OpenCall): Exclude<CallState, 'unknown'> =>
  permit !== undefined ? 'dispatched' : outcome !== undefined ? 'done' : 'prepared';

/** S7. */
export const judgedState = (row: Pick<CallRow, 'effectClass'>): Extract<CallState, 'unknown' | 'prepared'> =>
  row.effectClass === 'once' ? 'unknown' : 'prepared';

/** What a redrive replays of a call that a person declared done: its recorded result, or the fact that there is none. */
export function resolvedOutcome(recorded: RecordedOutcome | undefined): RecordedOutcome {
  if (recorded?.kind === 'result') return recorded;
  return { kind: 'error', code: 'resolved_as_done', message: 'A person recorded that this took effect; its output is not known.' };
}
