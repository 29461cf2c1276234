import type { Owner } from '../ids.ts';

/**
 * Secrets. In this version nothing is stored: the port exists so that the floor (redact exact values of live secrets) has its source.
 *
 * - B1 `liveSecrets` gives every secret value that is now leased to the owner; the caller keeps none of them.
 */
export interface Broker {
  liveSecrets(owner: Owner): readonly string[];
}
