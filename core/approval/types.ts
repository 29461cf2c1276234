import type { CallKey, CapabilityName, EffectClass, Reason } from '../capability/types.ts';
import type { Json } from '../json.ts';
import type { PolicyDigests } from '../policy/types.ts';
import type { Origin, Role } from '../run/types.ts';

/**
 * `pending` is answered `approved` or `denied`. `approved` is `consumed` by the one dispatch it is for. Either ends `expired` when its time
 * is over, or `withdrawn` when it can no longer count: its call changed, ended in another way, or its run did.
 */
export const APPROVAL_STATES = ['pending', 'approved', 'denied', 'expired', 'consumed', 'withdrawn'] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

/** States in which an approval may still let its call happen. */
export const LIVE_STATES: readonly ApprovalState[] = ['pending', 'approved'];

/** The most that an approved call may do, whatever it turns out to be. What proxy and kernel hold it to is this, not its arguments. */
export interface Ceiling {
  /** `kernel`: it starts exactly what is shown. `executor`: what is shown is the executor's own report. */
  readonly startedBy: 'kernel' | 'executor';
  /** Credentials that are bound to the call, by recipe, and what each may be used for; no operation means all that the recipe allows. */
  readonly leases: readonly { readonly recipe: string; readonly operations: readonly string[] }[];
  /** Hosts that may be reached. */
  readonly hosts: readonly string[];
  readonly outputBytes: number;
  readonly wallMs: number;
}

/** A file of the workspace that the command runs, as the kernel hashed and keeps it. */
export interface ReferencedFile {
  /** Index in argv that names it. */
  readonly argument: number;
  /** Relative to the workspace. */
  readonly path: string;
  readonly sha256: string;
  readonly size: number;
}

export type WarningKind =
  | 'bidi_control'
  | 'invisible'
  | 'control_character'
  | 'mixed_scripts'
  | 'looks_like_latin'
  | 'looks_like_sign'
  | 'drawn_over'
  | 'code_in_argument'
  | 'environment_loads_code'
  | 'cut'
  | 'arguments_are_claimed';

/** Something in what is shown that a reader could overlook. */
export interface ShownWarning {
  readonly kind: WarningKind;
  readonly message: string;
}

/** All that an approver reads: plain text in which every character is visible and no terminal or browser acts on one. */
export interface Shown {
  readonly text: string;
  readonly warnings: readonly ShownWarning[];
}

/** One ask for one call, and what became of it. All but the last group of fields never changes. */
export interface Approval {
  readonly id: string;
  readonly tenant: string;
  readonly thread: string;
  readonly run: string;
  /** Ledger row. */
  readonly call: string;
  readonly key: CallKey;
  readonly actor: string;
  /** Roles of the actor when it was asked. */
  readonly roles: readonly Role[];
  readonly origin: Origin;
  readonly capability: CapabilityName;
  readonly effectClass: EffectClass;
  /** Projection of the arguments, as policy saw it. */
  readonly args: Json;
  /** Digest of all that the approver is shown and the call is held to. */
  readonly fingerprint: string;
  readonly ceiling: Ceiling;
  readonly digests: PolicyDigests;
  readonly files: readonly ReferencedFile[];
  readonly shown: Shown;
  /** Why policy asks. */
  readonly reasons: readonly Reason[];
  /** Id of the decision that asked. */
  readonly decision: string;
  readonly createdAtMs: number;
  /** Answered later than this it is expired. */
  readonly expiresAtMs: number;
  /** Time from an approval to the end of its use. */
  readonly useWithinMs: number;

  readonly state: ApprovalState;
  readonly answeredAtMs: number | undefined;
  /** Who answered: a user, or `local:operator`, which no user can be called. */
  readonly answeredBy: string | undefined;
  /** Id of the decision that let them. */
  readonly answerDecision: string | undefined;
  readonly note: string | undefined;
  readonly useByMs: number | undefined;
  readonly endedAtMs: number | undefined;
}

/** The kernel's copy of a referenced file, on its way into the store. */
export interface KeptFile {
  readonly sha256: string;
  /** Base64. */
  readonly body: string;
}

/** What a call that has to wait brings to the store; the run, the key and the rest are the call's own. */
export interface NewApproval
  extends Pick<
    Approval,
    | 'id'
    | 'roles'
    | 'origin'
    | 'args'
    | 'fingerprint'
    | 'ceiling'
    | 'digests'
    | 'files'
    | 'shown'
    | 'reasons'
    | 'expiresAtMs'
    | 'useWithinMs'
  > {
  readonly kept: readonly KeptFile[];
}
