import type { Approval } from '../../core/approval/types.ts';
import type { NewEvent } from '../../core/events.ts';
import type { CallRow, DeliveryRow } from '../../core/ports/store.ts';
import type { ClaimedRun, Message, Run, User } from '../../core/run/types.ts';

/** Events that the store itself appends, because the write they belong to has no `event` parameter. */

type RunWords = Pick<Run, 'id' | 'tenant' | 'thread'>;

const ofRun = (run: RunWords, type: NewEvent['type'], data: NewEvent['data']): NewEvent => ({
  type,
  tenant: run.tenant,
  thread: run.thread,
  run: run.id,
  data,
});

export const userAdded = (user: User): NewEvent => ({
  type: 'user.added',
  tenant: user.tenant,
  data: { user: user.name, roles: user.roles },
});

export const tokenIssued = (tenant: string, user: string, expiresAtMs: number): NewEvent => ({
  type: 'user.token_issued',
  tenant,
  data: { user, expires_at_ms: expiresAtMs },
});

export const tokensRevoked = (tenant: string, user: string, count: number): NewEvent => ({
  type: 'user.tokens_revoked',
  tenant,
  data: { user, count },
});

export const userSwitched = ({ tenant, name, disabled }: User): NewEvent => ({
  type: disabled ? 'user.disabled' : 'user.enabled',
  tenant,
  data: { user: name },
});

export const messagePosted = (run: RunWords, message: Message): NewEvent =>
  ofRun(run, 'message.posted', { message: message.id, seq: message.seq, author: message.author, user: message.user });

export const runQueued = (run: Run): NewEvent => ofRun(run, 'run.queued', { actor: run.actor, origin: run.origin });

export const runSteered = (run: RunWords, message: Message): NewEvent =>
  ofRun(run, 'run.steered', { message: message.id, seq: message.seq });

export const runClaimed = (run: ClaimedRun): NewEvent =>
  ofRun(run, 'run.claimed', { fence: run.fence, holder: run.leaseHolder, lease_until_ms: run.leaseUntilMs });

/** How an expired lease ended its run, told by the state the run is in now. */
export function leaseExpired(run: Run): NewEvent {
  const data = { reason: 'lease_expired', fence: run.fence, reclaims: run.reclaims };
  if (run.state === 'queued') return ofRun(run, 'run.reclaimed', data);
  if (run.state === 'cancelled') return ofRun(run, 'run.cancelled', data);
  return ofRun(run, 'run.failed', { ...data, code: run.failure ?? null });
}

export const callUnknown = (run: RunWords, row: CallRow): NewEvent =>
  ofRun(run, 'call.unknown', { call_id: row.id, capability: row.capability, step: row.key.step, call: row.key.call });

export const deliveryUnknown = (row: DeliveryRow): NewEvent => ({
  type: 'delivery.unknown',
  tenant: row.tenant,
  thread: row.thread,
  run: row.run,
  data: { delivery: row.id, attempts: row.attempts },
});

const ofApproval = (approval: Approval, data: NewEvent['data'] = {}): NewEvent => ({
  type: `approval.${approval.state === 'pending' ? 'requested' : approval.state}`,
  tenant: approval.tenant,
  thread: approval.thread,
  run: approval.run,
  data: { approval: approval.id, call_id: approval.call, capability: approval.capability, ...data },
});

export const approvalAnswered = (approval: Approval): NewEvent =>
  ofApproval(approval, {
    by: approval.answeredBy ?? null,
    decision: approval.answerDecision ?? null,
    fingerprint: approval.fingerprint,
    ...(approval.useByMs === undefined ? {} : { use_by_ms: approval.useByMs }),
  });

/** Expired, consumed or withdrawn. */
export const approvalEnded = (approval: Approval): NewEvent => ofApproval(approval, { fingerprint: approval.fingerprint });

export const callNotApproved = ({ tenant, thread, run }: Approval, row: CallRow): NewEvent => ({
  type: 'call.denied',
  tenant,
  thread,
  run,
  data: {
    capability: row.capability,
    step: row.key.step,
    call: row.key.call,
    codes: row.outcome?.kind === 'denied' ? row.outcome.reasons.map(({ code }) => code) : [],
  },
});

export const runWoken = (run: RunWords, approval: Approval): NewEvent =>
  ofRun(run, 'run.woken', { gate: 'approval', ref: approval.id, as: approval.state });
