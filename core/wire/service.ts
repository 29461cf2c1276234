import type { CallReply, CallRequest, CallScope } from '../capability/types.ts';
import type { Json } from '../json.ts';
import type { ExitClaim } from '../run/types.ts';
import type { TokenClaims } from '../seams/run-tokens.ts';
import type { CheckpointBody, PermitClose, RunContext, SteerReply } from './protocol.ts';

/**
 * The kernel's side of the membrane, free of transport. The adapter authenticates, asks `scopeOf`, and passes parsed bodies on.
 * Every method rejects with a coded error (`CallError`, `StoreError`, `MembraneError`) and has then changed nothing but an event.
 */
export interface MembraneService {
  /** The live scope of a run token; undefined when the run has no seat, another fence, or another sandbox than the token says. */
  scopeOf(claims: Extract<TokenClaims, { kind: 'run' }>): CallScope | undefined;
  context(scope: CallScope): Promise<RunContext>;
  call(scope: CallScope, request: CallRequest, onDelta?: (text: string) => void): Promise<CallReply>;
  closePermit(scope: CallScope, close: PermitClose): Promise<Exclude<CallReply, { effect: 'permit' }>>;
  progress(scope: CallScope, data: Json): Promise<void>;
  steer(scope: CallScope, afterSeq: number): Promise<SteerReply>;
  checkpoint(scope: CallScope): Promise<CheckpointBody | undefined>;
  exit(scope: CallScope, claim: ExitClaim): Promise<void>;
  /** Records that a request was refused before it became a call (no token in the data). */
  refused(sandbox: { readonly tenant: string; readonly user: string; readonly sandbox: string }, operation: string, code: string): void;
}
