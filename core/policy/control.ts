import type { Json } from '../json.ts';
import type { PolicyDigests } from './types.ts';

/** A question that another snapshot answers differently. */
export interface Flip {
  /** Id of the recorded decision, or the note of a table row or probe. */
  readonly of: string;
  readonly kind: string;
  readonly before: 'allow' | 'ask' | 'deny';
  readonly after: 'allow' | 'ask' | 'deny';
  /** Lets something happen that did not: a higher effect, or an obligation gone or weakened. */
  readonly looser: boolean;
  /** Codes of the reasons for `after`. */
  readonly codes: readonly string[];
  /** What was asked, for a person: capability and arguments in short. */
  readonly about: Json;
}

/** Who asks for a change of policy; minted by the caller's side, and held to the role `policy` by the kernel. */
export interface PolicyPerson {
  readonly tenant: string;
  readonly user: string;
}

export interface PolicyChange {
  readonly digests: PolicyDigests;
  readonly snapshot: string;
  /** False when it ran already. */
  readonly changed: boolean;
  /** What the replay of recorded decisions, table rows and probes found. */
  readonly flips: readonly Flip[];
  /** Changes of a site's own rules and data that cannot be shown to allow no more, in words; they count as looser. */
  readonly unjudged?: readonly string[];
}

/** One snapshot that ran once and can run again. */
export interface KnownSnapshot {
  readonly snapshot: string;
  readonly digests: PolicyDigests;
  readonly acceptedAtMs: number;
  readonly current: boolean;
}

/**
 * What people do to the policy of a running kernel.
 *
 * - Y4 `apply` loads what is on disk through every gate; one that widens is refused with `policy_widening` unless a person with the role
 *   `policy` says so, and is then an event of its own.
 * - Y5 `rollBack` makes an earlier snapshot run again, by a person with that role; what is on disk stays out until it changes or is applied.
 */
export interface PolicyControl {
  /** @throws PolicyError `policy_widening` `policy_stale` `policy_malformed` `policy_unsigned` `policy_version` `policy_floor` */
  apply(request: { readonly widenBy?: string }): Promise<PolicyChange>;
  /** @param digest - of a snapshot, or its first eight characters or more. @throws UsageError `not_found` */
  rollBack(request: { readonly digest: string; readonly by: string }): Promise<PolicyChange>;
  snapshots(): Promise<readonly KnownSnapshot[]>;
}
