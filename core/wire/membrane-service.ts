import { type CallDeps, call } from '../capability/call.ts';
import { closePermit } from '../capability/close-call.ts';
import { evidenceText } from '../capability/redact.ts';
import { eventOf } from '../capability/reply.ts';
import type { CallReply, CallScope } from '../capability/types.ts';
import { CallError, OutworkError } from '../errors.ts';
import type { LiveRun } from '../run/live-runs.ts';
import type { RunContext } from './protocol.ts';
import type { MembraneService } from './service.ts';

export interface MembraneServiceDeps extends CallDeps {
  /** Progress of a run, already bounded by the membrane; coalesced before it becomes an event. */
  readonly progress: NonNullable<CallDeps['progress']>;
  readonly onError: (error: unknown, run: string | undefined) => void;
}

/** Messages read to find a run's own one among those that were queued after it. */
const CONTEXT_WINDOW = 1000;

/** The membrane's operations over the core; the same object serves sandboxes and the loop in the kernel process. */
export function createMembraneService(deps: MembraneServiceDeps): MembraneService {
  const liveOf = (scope: CallScope): LiveRun => {
    const live = deps.live.find(scope.run);
    if (live === undefined || live.scope.fence !== scope.fence) throw new CallError('stale_fence', 'This attempt is over');
    return live;
  };
  const record = (scope: CallScope, code: string, operation: string, reason?: string) =>
    deps.store.events
      .append(eventOf(scope, 'call.refused', { operation, code, ...(reason === undefined ? {} : { reason }) }), deps.clock.now())
      .catch((error: unknown) => deps.onError(error, scope.run));
  /** A refused call leaves an event; what policy denied is no refusal, it has its own. */
  const recorded = async <T>(scope: CallScope, operation: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const code = error instanceof OutworkError ? error.code : 'internal';
      // A ceiling says which account and dimension: that is for the operator too.
      await record(scope, code, operation, code === 'budget_exhausted' ? (error as Error).message : undefined);
      throw error;
    }
  };

  /** Saves an executor the round trip of asking when there is nothing to be told. */
  const hinted = <Reply extends CallReply>(scope: CallScope, reply: Reply): Reply =>
    reply.effect === 'done' && deps.live.find(scope.run)?.steeringWaits ? { ...reply, steering: true } : reply;

  return {
    scopeOf(claims) {
      const live = deps.live.find(claims.run);
      if (live === undefined) return undefined;
      const { scope } = live;
      const same =
        scope.fence === claims.fence &&
        scope.sandbox === claims.sandbox &&
        scope.tenant === claims.tenant &&
        scope.user === claims.user &&
        scope.thread === claims.thread &&
        scope.placement === claims.placement;
      return same ? scope : undefined;
    },
    context: (scope) => contextOf(deps, liveOf(scope)),
    call: async (scope, request, onDelta) =>
      hinted(scope, await recorded(scope, request.capability.slice(0, 64), () => call(deps, scope, request, onDelta))),
    closePermit: async (scope, report) => hinted(scope, await recorded(scope, 'permit.close', () => closePermit(deps, scope, report))),
    async progress(scope, data) {
      liveOf(scope);
      deps.progress(scope, data);
    },
    async steer(scope, afterSeq) {
      const live = liveOf(scope);
      live.steeringWaits = false;
      const messages = await deps.store.threads.messages(scope.thread, { afterSeq, limit: CONTEXT_WINDOW });
      const steering = messages.filter((message) => message.steers && message.run === scope.run);
      return { messages: steering.map(({ seq, body }) => ({ seq, body })), cancelled: live.cancelRequested };
    },
    async checkpoint(scope) {
      liveOf(scope);
      const latest = await deps.store.checkpoints.latest(scope.run);
      return latest === undefined ? undefined : { schema: latest.schema, version: latest.version, body: latest.body };
    },
    async exit(scope, claim) {
      const message = (text: string) => evidenceText(text, deps.broker.liveSecrets(scope));
      liveOf(scope).exit.resolve(claim.kind === 'failed' ? { ...claim, message: message(claim.message) } : claim);
    },
    refused(sandbox, operation, code) {
      const event = {
        type: 'membrane.refused' as const,
        tenant: sandbox.tenant,
        data: { user: sandbox.user, sandbox: sandbox.sandbox, operation, code },
      };
      deps.store.events.append(event, deps.clock.now()).catch((error: unknown) => deps.onError(error, undefined));
    },
  };
}

/** The thread up to the run's own message: what was queued later, and steering of other runs, is not this run's context. */
async function contextOf(deps: CallDeps, { scope, seat }: LiveRun): Promise<RunContext> {
  const all = await deps.store.threads.messages(scope.thread, { limit: CONTEXT_WINDOW });
  const own = all.find((message) => message.run === scope.run && message.author === 'user' && !message.steers);
  const upTo = own?.seq ?? Number.POSITIVE_INFINITY;
  const messages = all
    .filter((message) => message.seq <= upTo && !message.steers)
    .slice(-deps.capacity.contextMessages)
    .map(({ seq, author, user, body }) => ({ seq, author, user, body }));
  return { run: scope.run, thread: scope.thread, harness: seat.harness, messages, local: scope.placement !== 'host-loop-shell' };
}
