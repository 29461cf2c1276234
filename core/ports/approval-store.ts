import type { Approval, ApprovalState } from '../approval/types.ts';
import type { CallKey } from '../capability/types.ts';

/** A person's answer to one ask. */
export interface AnswerApproval {
  readonly approval: string;
  readonly to: 'approved' | 'denied';
  readonly by: string;
  /** Id of the decision that let them. */
  readonly decision: string;
  readonly note?: string;
  readonly nowMs: number;
}

/**
 * Asks for a person's approval, part of the `Store`.
 *
 * - S12 an ask is made by `CallStore.open` in the write that leaves its ledger row `prepared`, with its delivery; of one call at most one
 *   ask is live (`pending` or `approved`). An equal ask (same fingerprint) while one is `pending` makes no new one; another withdraws it.
 * - S13 `answer` is a compare-and-swap on `pending`, not after `expiresAtMs`: of several answers one counts. A denial closes the ledger row
 *   `done` with `approval_denied` in the same write, so that a redrive is told so whatever rules say by then.
 * - S14 an approval is used once: `CallStore.open` consumes it in the write that hands its call over, only for its own call, with its own
 *   fingerprint, not after `useByMs`; else `approval_unusable`, and nothing is changed.
 * - S15 `expire` ends what was not answered or not used in time, and closes its ledger row with `approval_expired`.
 * - S16 a run that is parked on an ask goes back to the queue in the write that answers or expires it; one that parks on an ask which is no
 *   longer `pending` does not stay parked. The time it was parked is added to its deadline.
 * - S17 a call that is handed over or refused in another way, and a run that ends, withdraw what is live of it in the same write.
 *
 * Events of its own: `approval.requested` comes with the ask; `answer` appends `approval.approved | approval.denied` (and then `call.denied`),
 * `expire` `approval.expired` and `call.denied`, each followed by `run.woken` when that wakes a run; `open` appends `approval.consumed`
 * and `approval.withdrawn`, and so does what ends a run.
 */
export interface ApprovalStore {
  get(id: string): Promise<Approval | undefined>;
  /** The one live ask of a call. */
  live(run: string, key: CallKey): Promise<Approval | undefined>;
  /** Newest first. */
  list(filter: {
    tenant?: string;
    run?: string;
    actor?: string;
    states?: readonly ApprovalState[];
    limit: number;
  }): Promise<readonly Approval[]>;
  /** @throws StoreError `not_found`; `conflict` (answered or withdrawn); `approval_expired` */
  answer(answer: AnswerApproval): Promise<Approval>;
  /** @returns those that expired now */
  expire(nowMs: number): Promise<readonly Approval[]>;
  /** Base64 of a referenced file that some ask brought, by its digest. */
  file(sha256: string): Promise<string | undefined>;
}
