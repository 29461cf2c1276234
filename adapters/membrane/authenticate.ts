import type { IncomingMessage } from 'node:http';
import type { CallScope } from '../../core/capability/types.ts';
import { CallError, MembraneError } from '../../core/errors.ts';
import type { RunClaims, RunTokens, TokenClaims } from '../../core/seams/run-tokens.ts';
import { OPERATIONS, type OperationName } from '../../core/wire/protocol.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import type { Seat } from './seat.ts';

const BEARER = /^Bearer ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/;

/**
 * Says whose request this is, from token and socket together: the token must be of the operation's kind and name the very sandbox and
 * owner whose socket the request came in by. A failure costs the socket tenfold.
 *
 * @throws MembraneError `unauthenticated`: the same for every cause
 */
export async function authenticate(
  request: IncomingMessage,
  options: { readonly operation: OperationName; readonly seat: Seat; readonly tokens: RunTokens; readonly failedTokenCost: number },
): Promise<TokenClaims> {
  const { operation, seat, tokens, failedTokenCost } = options;
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
  const claims = token === undefined ? undefined : await tokens.verify(token);
  if (claims === undefined || claims.kind !== OPERATIONS[operation].token || !isOf(seat, claims)) {
    // The request itself has been paid for.
    seat.admission.charge(failedTokenCost - 1);
    throw new MembraneError('unauthenticated', 'the token is not good for this');
  }
  return claims;
}

const isOf = ({ owner }: Seat, claims: TokenClaims): boolean =>
  claims.sandbox === owner.sandbox && claims.tenant === owner.tenant && claims.user === owner.user;

/** The live scope of a run token. @throws CallError `stale_fence` when the run has ended, moved or been taken over */
export function scopeOf(service: MembraneService, claims: RunClaims): CallScope {
  const scope = service.scopeOf(claims);
  if (scope === undefined) throw new CallError('stale_fence', 'the run has no seat under this fence');
  return scope;
}
