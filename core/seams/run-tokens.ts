import type { PlacementName } from '../run/types.ts';

/** What a sandbox token says: which sandbox generation of which owner. It admits `hello` and `control` only. */
export interface SandboxClaims {
  readonly kind: 'sandbox';
  readonly tenant: string;
  readonly user: string;
  readonly sandbox: string;
}

/** What a run token says. Lives until the run's deadline; the lease is enforced by the fence on every call. */
export interface RunClaims {
  readonly kind: 'run';
  readonly tenant: string;
  readonly user: string;
  readonly thread: string;
  readonly run: string;
  readonly fence: number;
  readonly placement: PlacementName;
  readonly sandbox: string;
}

export type TokenClaims = SandboxClaims | RunClaims;

/**
 * Signed tokens (JWT with EdDSA, RFC 8037). The key lives in this process only: a kernel restart ends every token.
 *
 * - T1 `verify` gives the claims of a token that this kernel signed for `audience`, unexpired and unrevoked; else undefined, never a reason.
 * - T2 a verified token is cached by digest until expiry or revocation.
 */
export interface RunTokens {
  mint(claims: TokenClaims, expiresAtMs: number): Promise<string>;
  verify(token: string): Promise<TokenClaims | undefined>;
  /** Ends every token of this run below `fence`, or of this sandbox. */
  revoke(what: { readonly run: string; readonly belowFence: number } | { readonly sandbox: string }): void;
}
