import type { CallReply, CallScope } from '../../core/capability/types.ts';
import type { RunClaims } from '../../core/seams/run-tokens.ts';
import type { MembraneService } from '../../core/wire/service.ts';

export interface Recorded {
  readonly operation: string;
  readonly run: string;
  readonly body: unknown;
}

export interface RecordingService extends MembraneService {
  /** What reached the kernel. Empty means that nothing was executed. */
  readonly executed: readonly Recorded[];
  readonly refusals: readonly { readonly sandbox: string; readonly operation: string; readonly code: string }[];
  /** Runs that have a seat, by fence. */
  readonly seats: Map<string, number>;
  /** What the next calls answer. */
  onCall: (body: unknown, onDelta?: (text: string) => void) => Promise<CallReply>;
  /** Forgets what was executed so far. */
  forget(): void;
}

export const scopeFrom = (claims: RunClaims): CallScope => ({
  tenant: claims.tenant,
  user: claims.user,
  roles: ['user'],
  thread: claims.thread,
  run: claims.run,
  fence: claims.fence,
  origin: 'interactive',
  placement: claims.placement,
  engine: 'bubblewrap',
  wall: 'namespaces',
  caller: 'executor',
  deadlineMs: Number.MAX_SAFE_INTEGER,
  sandbox: claims.sandbox,
});

/** The kernel's side, reduced to writing down what it was asked. */
export function recordingService(): RecordingService {
  const executed: Recorded[] = [];
  const refusals: { sandbox: string; operation: string; code: string }[] = [];
  const seats = new Map<string, number>();
  const record = (operation: string, scope: CallScope, body: unknown = null): void => {
    executed.push({ operation, run: scope.run, body });
  };
  const service: RecordingService = {
    executed,
    refusals,
    seats,
    onCall: async () => ({ effect: 'done', result: { ok: true }, replayed: false }),
    forget: () => {
      executed.length = 0;
    },
    scopeOf: (claims) => (seats.get(claims.run) === claims.fence ? scopeFrom(claims) : undefined),
    async context(scope) {
      record('context.get', scope);
      return { run: scope.run, thread: scope.thread, harness: 'scripted', messages: [], local: true };
    },
    async call(scope, request, onDelta) {
      record('call', scope, request);
      return service.onCall(request, onDelta);
    },
    async closePermit(scope, close) {
      record('permit.close', scope, close);
      return { effect: 'done', result: null, replayed: false };
    },
    async progress(scope, data) {
      record('progress.emit', scope, data);
    },
    async steer(scope, afterSeq) {
      record('steer.next', scope, afterSeq);
      return { messages: [{ seq: afterSeq + 1, body: 'go left' }], cancelled: false };
    },
    async checkpoint(scope) {
      record('checkpoint.get', scope);
      return undefined;
    },
    async exit(scope, claim) {
      record('exit', scope, claim);
    },
    refused({ sandbox }, operation, code) {
      refusals.push({ sandbox, operation, code });
    },
  };
  return service;
}
