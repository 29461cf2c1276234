import type { Approval, ApprovalState, NewApproval } from '../../core/approval/types.ts';
import { StoreError } from '../../core/errors.ts';
import type { AnswerApproval } from '../../core/ports/approval-store.ts';
import type { CallRow, OpenCall, RecordedOutcome } from '../../core/ports/store.ts';
import type { Run } from '../../core/run/types.ts';

/** The row of a new ask: what the call brings, and what its run and its ledger row say of it. */
export function newApproval(ask: NewApproval, run: Run, row: CallRow, nowMs: number): Approval {
  const { kept: _, ...asked } = ask;
  return {
    ...asked,
    tenant: run.tenant,
    thread: run.thread,
    run: run.id,
    call: row.id,
    key: row.key,
    actor: run.actor,
    capability: row.capability,
    effectClass: row.effectClass,
    decision: row.decision,
    createdAtMs: nowMs,
    state: 'pending',
    answeredAtMs: undefined,
    answeredBy: undefined,
    answerDecision: undefined,
    note: undefined,
    useByMs: undefined,
    endedAtMs: undefined,
  };
}

/** S12. Whether the live ask of a call stands for a new one. */
export const standsFor = (live: Approval, ask: NewApproval, nowMs: number): boolean =>
  live.state === 'pending' && live.fingerprint === ask.fingerprint && nowMs <= live.expiresAtMs;

/** S13. @throws StoreError `conflict` `approval_expired` */
export function requireAnswerable({ id, state, expiresAtMs }: Approval, nowMs: number): void {
  if (state === 'expired' || (state === 'pending' && nowMs > expiresAtMs))
    throw new StoreError('approval_expired', `The time to answer ${id} is over`);
  if (state !== 'pending') throw new StoreError('conflict', `${id} is ${state}: it has its answer, or needs none any more`);
}

export function answered(approval: Approval, { to, by, decision, note, nowMs }: AnswerApproval): Approval {
  const ends = to === 'denied' ? { endedAtMs: nowMs } : { useByMs: nowMs + approval.useWithinMs };
  return { ...approval, state: to, answeredAtMs: nowMs, answeredBy: by, answerDecision: decision, note, ...ends };
}

/** S14. @returns the approval. @throws StoreError `approval_unusable` */
export function requireUsable(
  approval: Approval | undefined,
  call: string | undefined,
  wanted: NonNullable<OpenCall['approval']>,
  nowMs: number,
): Approval {
  const fits = approval?.state === 'approved' && approval.call === call && approval.fingerprint === wanted.fingerprint;
  if (!fits || nowMs > (approval.useByMs ?? 0)) throw new StoreError('approval_unusable', `${wanted.id} does not let this call happen now`);
  return approval;
}

/** S15. */
export const isOver = ({ state, expiresAtMs, useByMs }: Approval, nowMs: number): boolean =>
  (state === 'pending' && nowMs > expiresAtMs) || (state === 'approved' && nowMs > (useByMs ?? 0));

export const ended = (
  approval: Approval,
  state: Extract<ApprovalState, 'expired' | 'consumed' | 'withdrawn'>,
  nowMs: number,
): Approval => ({
  ...approval,
  state,
  endedAtMs: nowMs,
});

/** What the ledger says of a call that was not approved; the model reads it. */
export function refusalOf({ state, note }: Approval): RecordedOutcome {
  const reason =
    state === 'denied'
      ? { code: 'approval_denied', message: note === undefined ? 'A person denied this call.' : `A person denied this call: ${note}` }
      : { code: 'approval_expired', message: 'Nobody approved this in time, or the approval was not used in time.' };
  return { kind: 'denied', reasons: [reason] };
}

/** S16. Whether a run waits for this ask. */
export const waitsFor = (run: Run, approval: string): boolean =>
  run.state === 'parked' && run.gate?.kind === 'approval' && run.gate.ref === approval;

/** What is sent to those who may answer. */
export const askText = ({ id, shown }: Approval): string =>
  `Approval needed: ${id}\n\n${shown.text}\n\noutwork approval approve ${id}\noutwork approval deny ${id}\n`;
