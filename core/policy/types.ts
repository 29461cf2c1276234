import type { EffectClass, Reason } from '../capability/types.ts';
import type { TypeOf } from './contract.ts';
import type { CONTRACTS } from './contracts.ts';

/** What rules read as `input`, by kind. Names are snake_case in Rego; `core/policy/contracts.ts` is the one source of both. */
export type CallPolicyInput = TypeOf<(typeof CONTRACTS)['call']>;
export type PlacementPolicyInput = TypeOf<(typeof CONTRACTS)['placement']>;
export type EgressPolicyInput = TypeOf<(typeof CONTRACTS)['egress']>;
export type ApprovalPolicyInput = TypeOf<(typeof CONTRACTS)['approval']>;
export type TriggerPolicyInput = TypeOf<(typeof CONTRACTS)['trigger']>;

export type PolicyInput = CallPolicyInput | PlacementPolicyInput | EgressPolicyInput | ApprovalPolicyInput | TriggerPolicyInput;

/** Obligations the kernel knows. Any other kind turns the decision into a deny. */
export type Obligation =
  | { readonly kind: 'redact' }
  | { readonly kind: 'audit' }
  | { readonly kind: 'output_limit'; readonly bytes: number }
  | { readonly kind: 'reserve'; readonly wallMs: number }
  | { readonly kind: 'effect_class'; readonly class: EffectClass }
  /** What happens to live secrets and to what looks like a credential in a result; only what is stricter than the floor has an effect. */
  | { readonly kind: 'leaks'; readonly exact: 'redact' | 'block'; readonly shapes: 'warn' | 'redact' | 'block' };

export interface PolicyDigests {
  /** Digest of the compiled rules. */
  readonly rules: string;
  /** Digest of the data the decision read. */
  readonly data: string;
  /** Version that the data states (data/release.yaml); absent before anything was loaded. */
  readonly version?: number;
}

/** A decision is a value. Whatever goes wrong in the engine becomes `effect: 'deny'` with a reason. */
export interface Decision {
  readonly effect: 'allow' | 'ask' | 'deny';
  readonly reasons: readonly Reason[];
  readonly obligations: readonly Obligation[];
  readonly digests: PolicyDigests;
  /** Time inside the engine, marshalling and deadline included. */
  readonly durationUs: number;
}

export interface PolicyStatus {
  readonly ready: boolean;
  readonly digests: PolicyDigests;
  /** When what runs now was loaded. */
  readonly loadedAtMs: number;
  /** Why the newest reload was refused; undefined when what is on disk is what runs. */
  readonly reloadFault: string | undefined;
  /** Digest of rules and data as one: what `policy rollback` names. */
  readonly snapshot?: string;
  /** Milliseconds since what runs now was loaded. */
  readonly ageMs?: number;
}

/**
 * The policy seam.
 *
 * - Y1 `decide` never throws and never takes much longer than the deadline: undefined, malformed, trap, timeout, oversize → deny.
 * - Y2 one decision is made by one snapshot of rules and data, named by its digests.
 * - Y3 a bundle or data that does not load leaves the last good one running, and `status().reloadFault` says so.
 */
export interface PolicyEngine {
  decide(input: PolicyInput): Decision;
  status(): PolicyStatus;
  close(): Promise<void>;
}
