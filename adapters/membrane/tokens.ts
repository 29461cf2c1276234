import { hash } from 'node:crypto';
import { type CryptoKey, generateKeyPair, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { newId } from '../../core/ids.ts';
import { PLACEMENTS, type PlacementName } from '../../core/run/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { RunTokens, TokenClaims } from '../../core/seams/run-tokens.ts';

const ISSUER = 'outwork/kernel';
const AUDIENCE = 'outwork/membrane';
const TYPE = { sandbox: 'outwork-sandbox+jwt', run: 'outwork-run+jwt' } as const;
/** Tokens are about 500 characters; anything longer is no token of ours and is not hashed. */
const MAX_TOKEN_LENGTH = 2048;
const MAX_CACHED = 1024;

interface Verified {
  readonly claims: TokenClaims;
  readonly expiresAtMs: number;
}

/** Revocations that still matter. An entry lives until every token it could concern has expired. */
interface Revocations {
  readonly runs: Map<string, { readonly belowFence: number; readonly untilMs: number }>;
  readonly sandboxes: Map<string, { readonly untilMs: number }>;
}

/**
 * Tokens signed with an Ed25519 key made here, never exported and never stored: a new process knows none of the old tokens.
 * Signing and the first verification cost about 0.1 ms each, a cached verification about 1 µs.
 */
export async function createRunTokens({ clock }: { readonly clock: Clock }): Promise<RunTokens> {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: false });
  const cache = new Map<string, Verified>();
  const revoked: Revocations = { runs: new Map(), sandboxes: new Map() };
  let latestExpiryMs = 0;

  const live = (token: Verified): boolean => token.expiresAtMs > clock.now() && !isRevoked(revoked, token.claims);

  return {
    async mint(claims, expiresAtMs) {
      latestExpiryMs = Math.max(latestExpiryMs, expiresAtMs);
      return new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'EdDSA', typ: TYPE[claims.kind] })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setJti(newId('token', clock.now()))
        .setIssuedAt(Math.floor(clock.now() / 1000))
        .setExpirationTime(expiresAtMs / 1000)
        .sign(privateKey);
    },

    async verify(token) {
      if (token.length === 0 || token.length > MAX_TOKEN_LENGTH) return undefined;
      const digest = hash('sha256', token, 'base64url');
      const cached = cache.get(digest);
      if (cached !== undefined) {
        if (live(cached)) return cached.claims;
        cache.delete(digest);
        return undefined;
      }
      const verified = await readToken(token, publicKey, clock.now());
      // Judged again after the wait: a revocation in between must not be undone by this entry.
      if (verified === undefined || !live(verified)) return undefined;
      if (cache.size >= MAX_CACHED) evictOldest(cache);
      cache.set(digest, verified);
      return verified.claims;
    },

    revoke(what) {
      const untilMs = Math.max(latestExpiryMs, clock.now());
      if ('run' in what) {
        const belowFence = Math.max(what.belowFence, revoked.runs.get(what.run)?.belowFence ?? 0);
        revoked.runs.set(what.run, { belowFence, untilMs });
      } else {
        revoked.sandboxes.set(what.sandbox, { untilMs });
      }
      for (const [digest, token] of cache) if (!live(token)) cache.delete(digest);
      forgetExpired(revoked, clock.now());
    },
  };
}

async function readToken(token: string, key: CryptoKey, nowMs: number): Promise<Verified | undefined> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      algorithms: ['EdDSA'],
      issuer: ISSUER,
      audience: AUDIENCE,
      requiredClaims: ['exp', 'iat', 'jti'],
      currentDate: new Date(nowMs),
    });
    const claims = readClaims(payload);
    if (claims === undefined || protectedHeader.typ !== TYPE[claims.kind] || payload.exp === undefined) return undefined;
    return { claims, expiresAtMs: Math.round(payload.exp * 1000) };
  } catch {
    // Every cause looks the same from outside: a reason would be an oracle.
    return undefined;
  }
}

function readClaims(payload: JWTPayload): TokenClaims | undefined {
  const { kind, tenant, user, sandbox, thread, run, fence, placement } = payload;
  if (!isText(tenant) || !isText(user) || !isText(sandbox)) return undefined;
  if (kind === 'sandbox') return { kind, tenant, user, sandbox };
  if (kind !== 'run' || !isText(thread) || !isText(run) || !isPlacement(placement)) return undefined;
  if (typeof fence !== 'number' || !Number.isSafeInteger(fence) || fence < 1) return undefined;
  return { kind, tenant, user, thread, run, fence, placement, sandbox };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.length > 0;
const isPlacement = (value: unknown): value is PlacementName => PLACEMENTS.some((name) => name === value);

function isRevoked(revoked: Revocations, claims: TokenClaims): boolean {
  if (revoked.sandboxes.has(claims.sandbox)) return true;
  return claims.kind === 'run' && claims.fence < (revoked.runs.get(claims.run)?.belowFence ?? 0);
}

function forgetExpired(revoked: Revocations, nowMs: number): void {
  for (const [run, entry] of revoked.runs) if (entry.untilMs <= nowMs) revoked.runs.delete(run);
  for (const [sandbox, entry] of revoked.sandboxes) if (entry.untilMs <= nowMs) revoked.sandboxes.delete(sandbox);
}

function evictOldest(cache: Map<string, Verified>): void {
  for (const digest of cache.keys()) {
    cache.delete(digest);
    return;
  }
}
