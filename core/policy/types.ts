import type { Caller, CapabilityName, EffectClass, Reason } from '../capability/types.ts';
import type { Json } from '../json.ts';
import type { EngineName, Origin, PlacementName, Role } from '../run/types.ts';

/** What both kinds of input carry. Names are snake_case in Rego; `adapters/policy/marshal.ts` is the one mapper. */
interface PolicyInputBase {
  readonly version: 1;
  readonly scope: { readonly tenant: string; readonly user: string; readonly thread: string; readonly run: string };
  readonly actor: { readonly user: string; readonly roles: readonly Role[] };
  readonly origin: Origin;
  readonly placement: PlacementName;
  readonly engine: EngineName;
  readonly wall: string;
  /** Milliseconds since the epoch, as a string: policies compare times as numbers only after `to_number`. */
  readonly time: string;
}

export interface CallPolicyInput extends PolicyInputBase {
  readonly kind: 'call';
  readonly capability: CapabilityName;
  readonly caller: Caller;
  readonly effectClass: EffectClass;
  /** Bounded, canonical projection of the arguments (see the descriptor). */
  readonly args: Json;
  readonly argsDigest: string;
  readonly callsUsed: number;
}

export interface PlacementPolicyInput extends PolicyInputBase {
  readonly kind: 'placement';
  readonly harness: string;
  readonly profile: 'development' | 'production';
}

export type PolicyInput = CallPolicyInput | PlacementPolicyInput;

/** Obligations the kernel knows. Any other kind turns the decision into a deny. */
export type Obligation =
  | { readonly kind: 'redact' }
  | { readonly kind: 'audit' }
  | { readonly kind: 'output_limit'; readonly bytes: number }
  | { readonly kind: 'reserve'; readonly wallMs: number }
  | { readonly kind: 'effect_class'; readonly class: EffectClass };

export interface PolicyDigests {
  /** Digest of the compiled rules. */
  readonly rules: string;
  /** Digest of the data the decision read. */
  readonly data: string;
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
