import { CallError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { Broker, CallCredential } from '../ports/broker.ts';
import type { Egress } from '../ports/egress.ts';
import type { LiveRun, LiveRuns } from '../run/live-runs.ts';
import { noteActors } from '../run/other-actors.ts';
import { isStoreFull } from '../run/until-stored.ts';
import { type AuthorizeDeps, type BoundCall, bindCall, type CallFacts, decideCall } from './authorize.ts';
import { meteredOf } from './ceilings.ts';
import { closeCall } from './close-call.ts';
import { commandBounds, type DispatchDeps, dispatch } from './dispatch.ts';
import { estimateOf } from './estimate.ts';
import { countLimits } from './limit-counts.ts';
import { openCall } from './open-call.ts';
import { type LocalPermits, type Permit, seal } from './permits.ts';
import type { FinalReply } from './reply.ts';
import type { Reservations } from './reservations.ts';
import type { CallReply, CallRequest, CallScope } from './types.ts';

export interface CallDeps extends AuthorizeDeps, DispatchDeps {
  readonly live: LiveRuns;
  readonly permits: LocalPermits;
  readonly reservations: Reservations;
  readonly broker: Broker;
  readonly egress: Egress;
  /** Takes what a run says of its progress; coalesced before it becomes an event. Absent: nobody listens. */
  readonly progress?: (scope: CallScope, data: Json) => void;
  /** A reply was made durable: delivery may look. */
  readonly onMessage: () => void;
}

/** Kept back from a permit's deadline, so that the outcome of a command that uses up its time is not late. */
const CLOSE_MARGIN_MS = 1000;

/**
 * The call pipeline, one path for every placement:
 * fence → form → reserve → credential? → decide → [credential missing: park] → [approved by a person, or park] → seal → ledger →
 * dispatch → obligations → ledger → event.
 * (Bounds of the socket and authentication come before it, in the membrane.)
 *
 * @throws CallError, StoreError `stale_fence` `disk_full` `store_unavailable`; the call has then not been executed, or its row stays
 * `dispatched` for the next attempt
 */
export async function call(deps: CallDeps, scope: CallScope, request: CallRequest, onDelta?: (text: string) => void): Promise<CallReply> {
  const run = deps.live.find(scope.run);
  if (run === undefined || run.scope.fence !== scope.fence || run.signal.aborted)
    throw new CallError('stale_fence', 'This attempt is over');
  const bound = bindCall(deps, scope, request);
  const wish = estimateOf(bound.descriptor, bound.request.args);
  const reservation = deps.reservations.reserve(scope, bound.request.key, wish);
  let handedOver = false;
  try {
    const credential = await credentialOf(deps, run, bound);
    const decide = () => decideCall(deps, scope, bound, { ...factsOf(deps, run), credential });
    const opened = await openCall(deps, run, bound, decide, meteredOf(wish));
    if ('reply' in opened) {
      if (opened.reply.effect === 'parked') run.gate = opened.reply.gate;
      if (bound.descriptor.name === 'message.post' || opened.reply.effect === 'parked') deps.onMessage();
      if (bound.descriptor.name === 'thread.read' && opened.reply.effect === 'done') noteActors(run, opened.reply.result);
      reservation.release();
      return opened.reply;
    }
    handedOver = true;
    const countsBefore = bound.descriptor.runsIn === 'command' ? countLimits(run.seat.tools) : undefined;
    const permit = seal({ ...opened.sealed, scope, row: opened.row, reservation, countsBefore });
    if (runsLocally(scope, bound)) return handOver(deps, bound, permit);
    return await execute(deps, run, bound, permit, onDelta);
  } catch (error) {
    // Of what has begun and tells no end, all that was reserved counts: a command that takes its sandbox with it gets nothing back.
    if (handedOver) reservation.forfeit();
    else reservation.release();
    run.refusedByStore = isStoreFull(error);
    throw error;
  }
}

/** What policy is told of the run beside its scope. */
const factsOf = ({ reservations, live }: CallDeps, { scope, otherActors = [] }: LiveRun): Omit<CallFacts, 'credential'> => ({
  callsUsed: reservations.callsOf(scope.run),
  callsLeft: reservations.callsLeftOf(scope.run),
  sandboxOrigins: live.originsOf(scope.sandbox),
  otherActors,
});

/**
 * @throws CallError `credential_unknown`, with nothing of the broker's own words: they are not the executor's to read. Also when the attempt
 * ends while the broker is silent: what was reserved for the call is given back then.
 */
async function credentialOf(
  { broker }: CallDeps,
  { scope: { tenant, user }, signal }: LiveRun,
  { descriptor, request }: BoundCall,
): Promise<CallCredential> {
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(new CallError('stale_fence', 'This attempt is over'));
  signal.addEventListener('abort', stop);
  try {
    return await Promise.race([
      broker.credentialOf({ tenant, user }, { capability: descriptor.name, args: request.args }),
      stopped.promise,
    ]);
  } catch (cause) {
    throw new CallError('credential_unknown', 'It is not known whether this call has its credential', { cause, retryable: true });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Commands of an executor that lives in the sandbox run there, by permit. */
const runsLocally = (scope: CallScope, bound: BoundCall): boolean =>
  bound.descriptor.runsIn === 'command' && scope.caller === 'executor' && scope.placement !== 'host-loop-shell';

function handOver(deps: CallDeps, bound: BoundCall, permit: Permit): CallReply {
  deps.permits.add(permit);
  const { timeoutMs: wished, outputBytes } = commandBounds(bound.request.args, permit, deps.capacity);
  const timeoutMs = Math.max(1, Math.min(wished, permit.deadlineMs - deps.clock.now() - CLOSE_MARGIN_MS));
  const argv = permit.argv === undefined ? {} : { argv: permit.argv };
  return { effect: 'permit', permit: { id: permit.id, deadlineMs: permit.deadlineMs, timeoutMs, outputBytes, ...argv } };
}

async function execute(
  deps: CallDeps,
  run: LiveRun,
  bound: BoundCall,
  permit: Permit,
  onDelta?: (text: string) => void,
): Promise<FinalReply> {
  const { args, key } = bound.request;
  const timeout = AbortSignal.timeout(Math.max(1, permit.deadlineMs - deps.clock.now()));
  const signal = AbortSignal.any([run.signal, timeout]);
  const secrets = deps.broker.liveSecrets(permit.scope);
  const outcome = await dispatch(deps, {
    permit,
    descriptor: bound.descriptor,
    args,
    step: key.step,
    seat: run.seat,
    signal,
    secrets,
    onDelta,
    onProgress: (progress) => deps.progress?.(permit.scope, { command: `${key.step}.${key.call}`, ...progress }),
  });
  return closeCall(deps, permit, outcome, run.seat.tools);
}
