import { StoreError } from '../../core/errors.ts';
import type { RunChange } from '../../core/ports/store.ts';
import { type Gate, isTerminal, type Run, type RunState, TRANSITIONS } from '../../core/run/types.ts';

/** Whether an attempt holds the run; every fenced write needs it (S2). */
export const isHeld = (state: RunState): boolean => state === 'running' || state === 'cancelling';

/** @throws StoreError `illegal_transition` */
export function requireTransition(from: RunState, to: RunState): void {
  if (!TRANSITIONS[from].includes(to)) throw new StoreError('illegal_transition', `A run cannot go from ${from} to ${to}`);
}

/**
 * What `settle` may do: it ends the attempt, so the run cannot stay held.
 * @throws StoreError `illegal_transition`
 */
export function requireSettlement(from: RunState, to: RunState): void {
  if (isHeld(to)) throw new StoreError('illegal_transition', `An attempt that ends cannot leave its run ${to}`);
  requireTransition(from, to);
}

/**
 * What `move` may do: it has no fence, so it may touch a held run only to ask it to cancel.
 * @throws StoreError `illegal_transition`
 */
export function requireMove(from: RunState, to: RunState, admitted: readonly RunState[]): void {
  if (!admitted.includes(from)) throw new StoreError('illegal_transition', `The run is ${from}, not ${admitted.join(' or ')}`);
  if (isHeld(from) && to !== 'cancelling') throw new StoreError('illegal_transition', `A ${from} run is moved by its attempt only`);
  requireTransition(from, to);
}

/** The fields of a run that follow from the state it moves to. */
export interface Landing {
  readonly state: RunState;
  readonly gate: Gate | undefined;
  readonly failure: string | undefined;
  readonly endedAtMs: number | undefined;
  readonly cancelRequested: boolean;
  readonly deadlineMs: number | undefined;
}

/** @param parkedAtMs - end of the run's last attempt: from then on a parked run has waited, and that time is not its own */
export function landing(
  run: Run,
  change: Pick<RunChange, 'to' | 'gate' | 'failure'>,
  nowMs: number,
  parkedAtMs: number | undefined,
): Landing {
  const waitedMs = run.state === 'parked' && change.to === 'queued' ? Math.max(0, nowMs - (parkedAtMs ?? nowMs)) : 0;
  return {
    state: change.to,
    gate: change.to === 'parked' ? change.gate : undefined,
    failure: change.to === 'failed' ? change.failure : undefined,
    endedAtMs: isTerminal(change.to) ? nowMs : undefined,
    cancelRequested: run.cancelRequested || change.to === 'cancelling',
    deadlineMs: run.deadlineMs === undefined ? undefined : run.deadlineMs + waitedMs,
  };
}

/** What an expired lease makes of its run (S4). */
export function afterLeaseExpiry(
  run: Run,
  reclaimBudget: number,
): Pick<RunChange, 'failure'> & { readonly to: 'queued' | 'failed' | 'cancelled' } {
  if (run.state === 'cancelling') return { to: 'cancelled' };
  return run.reclaims < reclaimBudget ? { to: 'queued' } : { to: 'failed', failure: 'reclaim_budget_exhausted' };
}

/** What cancellation makes of a run; undefined when it stays as it is. */
export function afterCancel(state: RunState): 'cancelled' | 'cancelling' | undefined {
  if (state === 'queued' || state === 'parked') return 'cancelled';
  return state === 'running' ? 'cancelling' : undefined;
}
