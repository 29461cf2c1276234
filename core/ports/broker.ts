import type { CapabilityName } from '../capability/types.ts';
import type { Owner } from '../ids.ts';
import type { Json } from '../json.ts';

/** A call as the broker is asked about it: all of its arguments, bounded and valid, of whom they are. */
export interface CredentialedCall {
  readonly capability: CapabilityName;
  readonly args: Json;
}

/** What a call would be given of secrets. `recipe` names what it is credentialed by, and is empty only for `none`. */
export type CallCredential =
  /** No recipe is for this call: it goes without a credential. */
  | { readonly credential: 'none'; readonly recipe: '' }
  | { readonly credential: 'present'; readonly recipe: string }
  /** Its owner has no credential for the recipe, or one that has expired. `hint` tells that person what to do about it. */
  | { readonly credential: 'missing'; readonly recipe: string; readonly hint: string };

/**
 * Secrets. The one that is shipped keeps none: an adapter (`core/adapter.ts`) can.
 *
 * - B1 `liveSecrets` gives every secret value that is now leased to the owner, and without an owner those of everybody; the caller keeps none
 *   of them.
 * - B2 `credentialOf` says what a call of this owner would be given, and gives nothing yet. A recipe's name is a name (`NAME_PATTERN`); neither it
 *   nor the hint holds a secret.
 * - B3 `isMissing` is true exactly while a call of the owner by that recipe would be answered `missing`; of a recipe that is not known
 *   nothing is missing.
 */
export interface Broker {
  liveSecrets(owner?: Owner): readonly string[];
  credentialOf(owner: Owner, call: CredentialedCall): Promise<CallCredential>;
  isMissing(owner: Owner, recipe: string): Promise<boolean>;
}
