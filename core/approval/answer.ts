import { inputDigestOf } from '../capability/authorize.ts';
import { clipText } from '../capability/truncate.ts';
import { ApprovalError, StoreError, UsageError } from '../errors.ts';
import { newId } from '../ids.ts';
import { CONTRACT_VERSION } from '../policy/contracts.ts';
import { loggedInput } from '../policy/log.ts';
import type { ApprovalPolicyInput, Decision, PolicyInput } from '../policy/types.ts';
import type { Store } from '../ports/store.ts';
import type { Role } from '../run/types.ts';
import type { Clock } from '../seams/clock.ts';
import type { Approval } from './types.ts';

/** Who answers. Made from a token or from the operator's own door, never from a payload. */
export interface Approver {
  /** Undefined for the local operator, who is of no tenant and answers for all. */
  readonly tenant: string | undefined;
  readonly user: string;
  readonly roles: readonly Role[];
}

/** Whoever may enter the state directory. No user can be called so: names hold no colon. */
export const LOCAL_OPERATOR: Approver = { tenant: undefined, user: 'local:operator', roles: ['operator', 'approver'] };

export interface AnswerDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly decide: (input: PolicyInput) => Promise<Decision>;
  readonly logInput?: 'digest' | 'redacted';
}

export interface Answer {
  readonly approval: string;
  readonly answer: 'approve' | 'deny';
  /** For the record, and for the model when the call is denied. */
  readonly note?: string;
}

/**
 * Records a person's answer, when policy lets that person give it. Of several answers to one ask the first counts.
 * @throws UsageError `not_found` (none of this tenant), `conflict` (answered, or no longer wanted);
 *   ApprovalError `approval_refused` (policy), `approval_expired`
 */
export async function answerApproval(deps: AnswerDeps, approver: Approver, { approval: id, answer, note }: Answer): Promise<Approval> {
  const asked = await deps.store.approvals.get(id);
  if (asked === undefined || (approver.tenant !== undefined && approver.tenant !== asked.tenant))
    throw new UsageError('not_found', `No approval ${id}`);
  const { decision, id: made, nowMs } = await mayAnswer(deps, asked, approver, answer);
  // Nobody is asked whether somebody may answer: anything but a plain yes is a no.
  if (decision.effect !== 'allow') {
    const why = decision.reasons.map(({ message }) => message).join(' ');
    throw new ApprovalError('approval_refused', `${approver.user} may not ${answer} this: ${why || 'policy asks for more'}`);
  }
  try {
    return await deps.store.approvals.answer({
      approval: id,
      to: answer === 'approve' ? 'approved' : 'denied',
      by: approver.user,
      decision: made,
      ...(note === undefined || note === '' ? {} : { note: clipText(note, 1000) }),
      nowMs,
    });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.code === 'conflict') throw new UsageError('conflict', error.message, { cause: error });
    if (error.code === 'approval_expired') throw new ApprovalError('approval_expired', error.message, { cause: error });
    throw error;
  }
}

/** Asks policy whether somebody may give an answer, and keeps what it said. */
export async function mayAnswer(
  deps: Omit<AnswerDeps, 'store'> & { readonly store: Pick<Store, 'decisions'> },
  asked: Approval,
  approver: Approver,
  answer: Answer['answer'],
): Promise<{ readonly decision: Decision; readonly id: string; readonly nowMs: number }> {
  const nowMs = deps.clock.now();
  const input = inputOf(asked, approver, answer, nowMs);
  const decision = await deps.decide(input);
  const id = newId('decision', nowMs);
  const row = { id, run: asked.run, kind: 'approval', capability: asked.capability, decision, atMs: nowMs } as const;
  await deps.store.decisions.add({ ...row, inputDigest: inputDigestOf(input), ...loggedInput(deps, input, []) });
  return { decision, id, nowMs };
}

/** Whether who approved may do so still: a user who was disabled since, or has another role by now, has not approved. */
export async function stillApproved(
  deps: Omit<AnswerDeps, 'store'> & { readonly store: Pick<Store, 'decisions' | 'users'> },
  approved: Approval,
): Promise<boolean> {
  const approver = await approverOf(deps.store, approved);
  return approver !== undefined && (await mayAnswer(deps, approved, approver, 'approve')).decision.effect === 'allow';
}

async function approverOf({ users }: Pick<Store, 'users'>, { tenant, answeredBy = '' }: Approval): Promise<Approver | undefined> {
  if (answeredBy === LOCAL_OPERATOR.user) return LOCAL_OPERATOR;
  const user = await users.get(tenant, answeredBy);
  return user === undefined || user.disabled ? undefined : { tenant, user: user.name, roles: user.roles };
}

function inputOf(asked: Approval, approver: Approver, answer: Answer['answer'], nowMs: number): ApprovalPolicyInput {
  const { tenant, thread, run, actor, roles, origin, id, capability, effectClass, args, fingerprint } = asked;
  return {
    kind: 'approval',
    version: CONTRACT_VERSION,
    scope: { tenant, user: actor, thread, run },
    actor: { user: actor, roles },
    origin,
    time: String(nowMs),
    answer,
    approver: { user: approver.user, roles: approver.roles },
    approval: id,
    capability,
    effectClass,
    args,
    fingerprint,
  };
}
