import { CallError } from '../errors.ts';
import { CANCELLED } from '../ports/executor.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { CloseCall, RecordedOutcome } from '../ports/store.ts';
import { untilStored } from '../run/until-stored.ts';
import type { PermitClose } from '../wire/protocol.ts';
import type { CallDeps } from './call.ts';
import { meteredOf } from './ceilings.ts';
import { claimedOutcome } from './dispatch.ts';
import { spentOn } from './estimate.ts';
import { toldLimits } from './limit-counts.ts';
import { keepOutcome } from './outcome.ts';
import type { Permit } from './permits.ts';
import { eventOf, type FinalReply, leaksOf, replyOf, summaryOf } from './reply.ts';
import type { CallScope } from './types.ts';

/** The executor reports how a local command ended. @throws CallError `permit_unknown` `permit_expired` */
export async function closePermit(deps: CallDeps, scope: CallScope, report: PermitClose): Promise<FinalReply> {
  const live = deps.live.find(scope.run);
  // The kernel has stopped this attempt, and with it the command: how that would have ended is not known. A cancellation waits for its end.
  if (live?.signal.aborted && live.signal.reason !== CANCELLED) throw new CallError('stale_fence', 'This attempt is over');
  const permit = deps.permits.take(report.permit, scope);
  const late = deps.clock.now() > permit.deadlineMs;
  const reply = await closeCall(deps, permit, claimedOutcome(report.outcome, report.error), live?.seat.tools, late ? 'unknown' : undefined);
  if (late) throw new CallError('permit_expired', 'The outcome came after the deadline of its permit');
  return reply;
}

/** Obligations, then the row's end and its event in one durable write, which waits for room as long as the attempt lives. */
export async function closeCall(
  deps: CallDeps,
  permit: Permit,
  raw: RecordedOutcome,
  tools?: SandboxTools,
  forced?: 'unknown',
): Promise<FinalReply> {
  const { scope, row } = permit;
  try {
    const secrets = deps.broker.liveSecrets(scope);
    const { leaks: found, outputBytes } = permit.terms;
    const rules = { capability: row.capability, secrets, leaks: found, outputBytes, keepControls: permit.keepControls };
    const { outcome, leaks } = keepOutcome(await toldLimits(raw, permit.countsBefore, tools), rules);
    const spent = spentOn(row.capability, outcome, Math.min(deps.clock.now() - row.openedAtMs, permit.terms.reserveWallMs));
    const state = forced ?? (deps.egress.openRequests(permit.id) > 0 ? 'unknown' : 'done');
    const end: CloseCall = {
      permit: permit.id,
      outcome,
      state,
      spent: meteredOf(spent),
      event: eventOf(scope, state === 'done' ? 'call.completed' : 'call.unknown', {
        capability: row.capability,
        call_id: row.id,
        ...summaryOf(outcome),
        ...leaksOf(leaks),
      }),
      nowMs: deps.clock.now(),
    };
    const attempt = deps.live.find(scope.run)?.signal ?? AbortSignal.abort();
    const closed = await untilStored(deps.clock, attempt, () => deps.store.calls.close(scope, end));
    permit.reservation.settle(spent);
    return replyOf(closed, false);
  } catch (error) {
    permit.reservation.forfeit();
    throw error;
  }
}
