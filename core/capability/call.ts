import { type Fate, fateOf, toldOf, writeOf } from '../approval/fate.ts';
import { CallError, StoreError } from '../errors.ts';
import { newId } from '../ids.ts';
import type { Json } from '../json.ts';
import { loggedInput } from '../policy/log.ts';
import type { Broker, CallCredential } from '../ports/broker.ts';
import type { Egress } from '../ports/egress.ts';
import { CANCELLED } from '../ports/executor.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { CallRow, CloseCall, OpenCall, RecordedOutcome } from '../ports/store.ts';
import type { LiveRun, LiveRuns } from '../run/live-runs.ts';
import { noteActors } from '../run/other-actors.ts';
import { isStoreFull, untilStored } from '../run/until-stored.ts';
import type { PermitClose } from '../wire/protocol.ts';
import { type AuthorizeDeps, type BoundCall, bindCall, type CallFacts, decideCall, type Verdict } from './authorize.ts';
import { type Amounts, meteredOf } from './ceilings.ts';
import { claimedOutcome, commandBounds, type DispatchDeps, dispatch, storeEffect } from './dispatch.ts';
import { estimateOf, spentOn } from './estimate.ts';
import { leakTermsOf, type Terms, termsOf } from './floor.ts';
import { countLimits, toldLimits } from './limit-counts.ts';
import { keepOutcome } from './outcome.ts';
import { type LocalPermits, type Permit, seal } from './permits.ts';
import { evidenceLine } from './redact.ts';
import { approvalGate, eventOf, type FinalReply, leaksOf, replyOf, summaryOf, unknownGate } from './reply.ts';
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
/** Longest one-line account of what was asked. */
const SUMMARY_CHARACTERS = 400;

/**
 * The call pipeline, one path for every placement:
 * bound → fence → credential? → decide → [credential missing: park] → [approved by a person, or park] → reserve → seal → ledger → dispatch → obligations → ledger → event.
 * (Bounds of the socket and authentication come before it, in the membrane.)
 *
 * @throws CallError, StoreError `stale_fence` `disk_full` `store_unavailable`; the call has then not been executed, or its row stays `dispatched` for the next attempt
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
    const credential = await credentialOf(deps, scope, bound);
    const decide = () => decideCall(deps, scope, bound, { ...factsOf(deps, run), credential });
    const opened = await openAsDecided(deps, run, bound, decide, meteredOf(wish));
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

/** @throws CallError `credential_unknown`, with nothing of the broker's own words: they are not the executor's to read */
async function credentialOf(
  { broker }: CallDeps,
  { tenant, user }: CallScope,
  { descriptor, request }: BoundCall,
): Promise<CallCredential> {
  try {
    return await broker.credentialOf({ tenant, user }, { capability: descriptor.name, args: request.args });
  } catch (cause) {
    throw new CallError('credential_unknown', 'It is not known whether this call has its credential', { cause, retryable: true });
  }
}

/** Commands of an executor that lives in the sandbox run there, by permit. */
const runsLocally = (scope: CallScope, bound: BoundCall): boolean =>
  bound.descriptor.runsIn === 'command' && scope.caller === 'executor' && scope.placement !== 'host-loop-shell';

/** For a call whose whole effect is on the store: how it ends, with the obligations applied, so that one durable write does it all. */
async function closingOf(
  deps: CallDeps,
  scope: CallScope,
  { descriptor, request }: BoundCall,
  { decision }: Verdict,
  fate: Fate,
): Promise<OpenCall['closing']> {
  if (descriptor.runsIn !== 'store' || fate.kind !== 'go') return undefined;
  const secrets = deps.broker.liveSecrets(scope);
  const { outcome, effect } = await storeEffect(deps, scope.thread, descriptor, request.args);
  const { step, call } = request.key;
  const rules = { capability: descriptor.name, secrets, leaks: leakTermsOf(decision), outputBytes: deps.capacity.outputDefaultBytes };
  const { leaks, ...kept } = keepOutcome(outcome, rules, effect);
  return { ...kept, event: eventOf(scope, 'call.completed', { capability: descriptor.name, step, call, ...leaksOf(leaks) }) };
}

/** Opens the call as policy, or the person it asks for, decided. An approval that was lost between look and write is looked for again. */
async function openAsDecided(
  deps: CallDeps,
  run: LiveRun,
  bound: BoundCall,
  decide: () => Verdict,
  reserved: Amounts,
): Promise<Awaited<ReturnType<typeof open>>> {
  const { scope } = run;
  const attempt = async () => {
    const { fate, verdict } = await decided(deps, run, bound, decide);
    return open(deps, scope, bound, verdict, fate, reserved, await closingOf(deps, scope, bound, verdict, fate));
  };
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof StoreError && error.code === 'approval_unusable') return attempt();
    throw error;
  }
}

/** What becomes of the call. An approved one is held to the rules that run when its files are placed: the sandbox could have taken its time. */
async function decided(deps: CallDeps, run: LiveRun, bound: BoundCall, decide: () => Verdict): Promise<{ fate: Fate; verdict: Verdict }> {
  for (let verdict = decide(); ; ) {
    const fate = await fateOf(deps, run, bound, verdict, termsFor(deps, bound, verdict), deps.broker.liveSecrets(run.scope));
    if (fate.kind !== 'go' || fate.consent === undefined) return { fate, verdict };
    const now = decide();
    if (isSame(now, verdict)) return { fate, verdict };
    verdict = now;
  }
}

const isSame = ({ decision: now }: Verdict, { decision: before }: Verdict): boolean =>
  now.effect === before.effect && now.digests.rules === before.digests.rules && now.digests.data === before.digests.data;

function termsFor(deps: CallDeps, { descriptor, request }: BoundCall, { decision, credential }: Verdict): Terms {
  const { outputBytes: asked } = (request.args ?? {}) as { outputBytes?: number };
  const permitMs = descriptor.permitMs(request.args);
  return termsOf(descriptor, decision, asked, permitMs, deps.capacity.outputDefaultBytes, credential.credential);
}

interface Sealed {
  readonly id: string;
  readonly deadlineMs: number;
  readonly terms: Terms;
  readonly keepControls: boolean;
  readonly argv: readonly string[] | undefined;
}

/** Decision, ledger row, permit and event in one durable write; or the answer that an earlier attempt left. */
async function open(
  deps: CallDeps,
  scope: CallScope,
  bound: BoundCall,
  verdict: Verdict,
  fate: Fate,
  reserved: Amounts,
  closing: OpenCall['closing'],
): Promise<{ row: CallRow; sealed: Sealed } | { reply: FinalReply }> {
  const { descriptor, request, argsDigest } = bound;
  const { decision, inputDigest, input } = verdict;
  const nowMs = deps.clock.now();
  const { controls } = (request.args ?? {}) as { controls?: string };
  const deadlineMs = Math.min(nowMs + descriptor.permitMs(request.args), scope.deadlineMs);
  const sealed: Sealed = {
    id: newId('permit', nowMs),
    deadlineMs,
    terms: termsFor(deps, bound, verdict),
    keepControls: controls === 'keep',
    argv: fate.kind === 'go' ? fate.consent?.argv : undefined,
  };
  const secrets = deps.broker.liveSecrets(scope);
  const told = toldOf(fate, verdict, sealed);
  const id = newId('decision', nowMs);
  const opened = await deps.store.calls.open(scope, {
    key: request.key,
    capability: descriptor.name,
    effectClass: sealed.terms.effectClass,
    argsDigest,
    summary: evidenceLine(descriptor.summarize(request.args), secrets, SUMMARY_CHARACTERS),
    decision: { id, inputDigest, decision, ...loggedInput(deps, input, secrets) },
    ...writeOf(fate, sealed, closing),
    reserved,
    event: eventOf(scope, told.type, { capability: descriptor.name, ...request.key, decision: id, ...told.data }),
    nowMs,
  });
  switch (opened.kind) {
    case 'opened':
      return { row: opened.row, sealed };
    case 'recorded':
      return { reply: replyOf(opened.row, opened.row.decision !== id) };
    case 'unknown':
      return { reply: { effect: 'parked', gate: unknownGate(opened.row) } };
    case 'parked':
      return { reply: { effect: 'parked', gate: approvalGate(opened.approval) } };
    case 'waiting':
      return { reply: { effect: 'parked', gate: opened.gate } };
    case 'in_flight':
      throw new CallError('in_flight', 'This call is being carried out');
    case 'nondeterministic':
      throw new CallError(
        'nondeterministic',
        `Call ${request.key.step}.${request.key.call} was recorded with other arguments or another capability`,
      );
  }
}

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
  return close(deps, permit, outcome, run.seat.tools);
}

/** The executor reports how a local command ended. @throws CallError `permit_unknown` `permit_expired` */
export async function closePermit(deps: CallDeps, scope: CallScope, report: PermitClose): Promise<FinalReply> {
  const live = deps.live.find(scope.run);
  // The kernel has stopped this attempt, and with it the command: how that would have ended is not known. A cancellation waits for its end.
  if (live?.signal.aborted && live.signal.reason !== CANCELLED) throw new CallError('stale_fence', 'This attempt is over');
  const permit = deps.permits.take(report.permit, scope);
  const late = deps.clock.now() > permit.deadlineMs;
  const reply = await close(deps, permit, claimedOutcome(report.outcome, report.error), live?.seat.tools, late ? 'unknown' : undefined);
  if (late) throw new CallError('permit_expired', 'The outcome came after the deadline of its permit');
  return reply;
}

/** Obligations, then the row's end and its event in one durable write, which waits for room as long as the attempt lives. */
async function close(deps: CallDeps, permit: Permit, raw: RecordedOutcome, tools?: SandboxTools, forced?: 'unknown'): Promise<FinalReply> {
  const { scope, row } = permit;
  try {
    const secrets = deps.broker.liveSecrets(scope);
    const { leaks: found, outputBytes } = permit.terms;
    const rules = { capability: row.capability, secrets, leaks: found, outputBytes, keepControls: permit.keepControls };
    const { outcome, leaks } = keepOutcome(await toldLimits(raw, permit.countsBefore, tools), rules);
    const spent = spentOn(row.capability, outcome, Math.min(deps.clock.now() - row.openedAtMs, permit.terms.reserveWallMs));
    const state = forced ?? (deps.egress.openRequests(permit.id) > 0 ? 'unknown' : 'done');
    const end: CloseCall = {
      permit: permit.id,
      outcome,
      state,
      spent: meteredOf(spent),
      event: eventOf(scope, state === 'done' ? 'call.completed' : 'call.unknown', {
        capability: row.capability,
        call_id: row.id,
        ...summaryOf(outcome),
        ...leaksOf(leaks),
      }),
      nowMs: deps.clock.now(),
    };
    const attempt = deps.live.find(scope.run)?.signal ?? AbortSignal.abort();
    const closed = await untilStored(deps.clock, attempt, () => deps.store.calls.close(scope, end));
    permit.reservation.settle(spent);
    return replyOf(closed, false);
  } catch (error) {
    permit.reservation.forfeit();
    throw error;
  }
}
