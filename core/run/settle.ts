import { eventOf, unknownGate } from '../capability/reply.ts';
import { clipText, storableText } from '../capability/truncate.ts';
import type { Reason } from '../capability/types.ts';
import { StoreError } from '../errors.ts';
import type { NewEvent } from '../events.ts';
import type { CallRow, RunChange } from '../ports/store.ts';
import type { RunDeps } from './execute-run.ts';
import type { LiveRun } from './live-runs.ts';
import type { ClaimedRun, ExecutorOutcome, Gate } from './types.ts';
import { untilStored } from './until-stored.ts';

/** How an attempt ended, after the kernel has looked at its own evidence. */
export type Ending =
  | { readonly kind: 'completed' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'parked'; readonly gate: Gate }
  | { readonly kind: 'failed'; readonly code: string; readonly reasons: readonly Cause[]; readonly decision?: string }
  /** Another attempt may go on from the last safe checkpoint. `cause` is what stays when there is no other attempt. */
  | { readonly kind: 'lost'; readonly reason: string; readonly cause?: Cause };

/** Why an attempt ended as it did, and what a person can do about it. */
export interface Cause extends Reason {
  readonly hint?: string | undefined;
}

export const failed = (code: string, reasons: readonly Cause[] = [], decision?: string): Ending => ({
  kind: 'failed',
  code,
  reasons,
  ...(decision === undefined ? {} : { decision }),
});

/**
 * Checks the executor's exit, an untrusted claim, against the ledger: a `completed` needs a posted reply and no call with an open end,
 * a `parked` the gate the kernel itself gave, a `cancelled` a cancellation that was asked for.
 */
export async function endingOf(deps: RunDeps, run: ClaimedRun, live: LiveRun, outcome: ExecutorOutcome): Promise<Ending> {
  const { open, replied } = await evidenceOf(deps, run);
  const finished = replied && open === undefined;
  // A reply that is in the thread cannot be cancelled any more.
  if (live.cancelRequested) return { kind: finished ? 'completed' : 'cancelled' };
  // No other attempt will judge the ledger: what is open is told here.
  if (deps.clock.now() >= run.deadlineMs && !finished)
    return failed('deadline_exceeded', open === undefined ? [] : [{ code: 'call_unknown', message: unknownGate(open).reason }]);
  if (outcome.kind === 'lost') return outcome;
  const { claim } = outcome;
  switch (claim.kind) {
    case 'completed': {
      if (open?.state === 'unknown') return { kind: 'parked', gate: unknownGate(open) };
      if (open !== undefined) return { kind: 'lost', reason: 'the executor claimed completion while a command was open' };
      return replied ? { kind: 'completed' } : failed('exit_contradicts_evidence');
    }
    case 'parked':
      return live.gate === undefined ? failed('exit_contradicts_evidence') : { kind: 'parked', gate: live.gate };
    case 'cancelled':
      // The kernel told it to stop, for its own reasons: a lost lease, or its closing.
      return live.signal.aborted ? { kind: 'lost', reason: 'stopped' } : failed('exit_contradicts_evidence');
    case 'failed':
      // What it could not have written down did not happen: another attempt goes on when there is room.
      if (live.refusedByStore === true) return { kind: 'lost', reason: `the store refused a call: ${claim.code}` };
      return failed(`executor_${claim.code.replaceAll(/[^a-z0-9_]/g, '_').slice(0, 48)}`, [
        { code: 'executor', message: clipText(storableText(claim.message), 500) },
      ]);
  }
}

/** What the ledger shows of a run: whether its reply was posted, and a call whose end is open. */
async function evidenceOf(deps: RunDeps, run: ClaimedRun): Promise<{ replied: boolean; open: CallRow | undefined }> {
  const rows = await deps.store.calls.list(run.id);
  const open = rows.find((row) => row.state === 'unknown' || (row.state === 'dispatched' && row.effectClass === 'once'));
  return { open, replied: rows.some((row) => row.capability === 'message.post' && row.state === 'done' && row.outcome?.kind === 'result') };
}

/**
 * The one write that ends an attempt. An attempt that lost its lease has nothing left to say.
 * @param counts - whether a lost attempt draws on the reclaim budget
 * @param closing - aborted when the kernel closes: until then a full disk is waited for
 */
export async function settle(deps: RunDeps, run: ClaimedRun, ending: Ending, counts: boolean, closing: AbortSignal): Promise<void> {
  const scope = { tenant: run.tenant, thread: run.thread, run: run.id };
  const event = (type: NewEvent['type'], data: NewEvent['data']) => eventOf(scope, type, { fence: run.fence, ...data });
  const ref = { run: run.id, fence: run.fence };
  const nowMs = deps.clock.now();
  const at = { nowMs, outcome: ending.kind };
  const end = (change: RunChange & { reclaim?: boolean }) =>
    untilStored(deps.clock, closing, () => deps.store.runs.settle(ref, { ...change, ...at }));
  try {
    switch (ending.kind) {
      case 'completed':
        await end({ to: 'completed', event: event('run.completed', {}) });
        break;
      case 'cancelled':
        await end({ to: 'cancelled', event: event('run.cancelled', {}) });
        break;
      case 'parked':
        await end({
          to: 'parked',
          gate: ending.gate,
          event: event('run.parked', { gate: ending.gate.kind, ref: ending.gate.ref }),
        });
        return;
      case 'failed': {
        const reasons = ending.reasons.map(causeJson);
        await end({
          to: 'failed',
          failure: ending.code,
          event: event('run.failed', {
            code: ending.code,
            reasons,
            ...(ending.decision === undefined ? {} : { decision: ending.decision }),
          }),
        });
        break;
      }
      case 'lost': {
        const data = { reason: clipText(storableText(ending.reason), 500) };
        if (counts && run.reclaims + 1 > deps.config.capacity.reclaims) {
          const failure = 'reclaim_budget_exhausted';
          const reasons = [causeJson(ending.cause ?? { code: 'lost', message: data.reason })];
          await end({
            to: 'failed',
            failure,
            event: event('run.failed', { code: failure, reasons, ...data }),
          });
          break;
        }
        await end({ to: 'queued', reclaim: counts, event: event('run.reclaimed', data) });
        return;
      }
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.code === 'stale_fence' || error.code === 'lease_lost') return;
    // Cancellation came in between: a cancelling run neither parks nor goes back to the queue.
    if (error.code === 'illegal_transition' && ending.kind !== 'cancelled')
      return settle(deps, run, { kind: 'cancelled' }, counts, closing);
    throw error;
  }
}

const causeJson = ({ code, message, hint }: Cause) => ({
  code,
  message: clipText(storableText(message), 500),
  ...(hint === undefined ? {} : { hint: clipText(storableText(hint), 500) }),
});
