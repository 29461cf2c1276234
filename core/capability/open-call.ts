import { type Fate, fateOf, toldOf, writeOf } from '../approval/fate.ts';
import { CallError, StoreError } from '../errors.ts';
import { newId } from '../ids.ts';
import { loggedInput } from '../policy/log.ts';
import type { CallRow, OpenCall } from '../ports/store.ts';
import type { LiveRun } from '../run/live-runs.ts';
import type { BoundCall, Verdict } from './authorize.ts';
import type { CallDeps } from './call.ts';
import type { Amounts } from './ceilings.ts';
import { storeEffect } from './dispatch.ts';
import { type Terms, termsOf } from './floor.ts';
import { keepOutcome } from './outcome.ts';
import { evidenceLine } from './redact.ts';
import { approvalGate, eventOf, type FinalReply, leaksOf, replyOf, unknownGate } from './reply.ts';
import type { CallScope } from './types.ts';

/** Longest one-line account of what was asked. */
const SUMMARY_CHARACTERS = 400;

interface Sealed {
  readonly id: string;
  readonly deadlineMs: number;
  readonly terms: Terms;
  readonly keepControls: boolean;
  readonly argv: readonly string[] | undefined;
}

/** A call that is to be carried out now, or its answer. */
export type Opened = { readonly row: CallRow; readonly sealed: Sealed } | { readonly reply: FinalReply };

interface Decided {
  readonly fate: Fate;
  readonly verdict: Verdict;
  readonly terms: Terms;
}

/**
 * Opens the call as policy, or the person it asks for, decided. An approval that was lost between look and write is looked for again.
 *
 * @param reserved - what of its reservation is metered
 * @throws CallError `in_flight` `nondeterministic`; StoreError, SandboxError
 */
export async function openCall(deps: CallDeps, run: LiveRun, bound: BoundCall, decide: () => Verdict, reserved: Amounts): Promise<Opened> {
  const attempt = async () => write(deps, run.scope, bound, await decided(deps, run, bound, decide), reserved);
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof StoreError && error.code === 'approval_unusable') return attempt();
    throw error;
  }
}

/** What becomes of the call. An approved one is held to the rules that run when its files are placed: the sandbox could have taken its time. */
async function decided(deps: CallDeps, run: LiveRun, bound: BoundCall, decide: () => Verdict): Promise<Decided> {
  for (let verdict = decide(); ; ) {
    const terms = termsFor(deps, bound, verdict);
    const fate = await fateOf(deps, run, bound, verdict, terms, deps.broker.liveSecrets(run.scope));
    if (fate.kind !== 'go' || fate.consent === undefined) return { fate, verdict, terms };
    const now = decide();
    if (isSame(now, verdict)) return { fate, verdict, terms };
    verdict = now;
  }
}

const isSame = ({ decision: now }: Verdict, { decision: before }: Verdict): boolean =>
  now.effect === before.effect && now.digests.rules === before.digests.rules && now.digests.data === before.digests.data;

function termsFor(deps: CallDeps, { descriptor, request }: BoundCall, { decision, credential }: Verdict): Terms {
  const { outputBytes: asked } = (request.args ?? {}) as { outputBytes?: number };
  return termsOf({
    descriptor,
    decision,
    credential: credential.credential,
    outputBytes: asked ?? deps.capacity.outputDefaultBytes,
    wallMs: descriptor.permitMs(request.args),
  });
}

/** Decision, ledger row, permit and event in one durable write; or the answer that an earlier attempt left. */
async function write(deps: CallDeps, scope: CallScope, bound: BoundCall, ruling: Decided, reserved: Amounts): Promise<Opened> {
  const { fate, verdict, terms } = ruling;
  const closing = await closingOf(deps, scope, bound, ruling);
  const { descriptor, request, argsDigest } = bound;
  const { decision, inputDigest, input } = verdict;
  const nowMs = deps.clock.now();
  const { controls } = (request.args ?? {}) as { controls?: string };
  const deadlineMs = Math.min(nowMs + descriptor.permitMs(request.args), scope.deadlineMs);
  const sealed: Sealed = {
    id: newId('permit', nowMs),
    deadlineMs,
    terms,
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

/** For a call whose whole effect is on the store: how it ends, with the obligations applied, so that one durable write does it all. */
async function closingOf(
  deps: CallDeps,
  scope: CallScope,
  { descriptor, request }: BoundCall,
  { fate, terms }: Decided,
): Promise<OpenCall['closing']> {
  if (descriptor.runsIn !== 'store' || fate.kind !== 'go') return undefined;
  const secrets = deps.broker.liveSecrets(scope);
  const { outcome, effect } = await storeEffect(deps, scope.thread, descriptor, request.args);
  const { step, call } = request.key;
  const rules = { capability: descriptor.name, secrets, leaks: terms.leaks, outputBytes: deps.capacity.outputDefaultBytes };
  const { leaks, ...kept } = keepOutcome(outcome, rules, effect);
  return { ...kept, event: eventOf(scope, 'call.completed', { capability: descriptor.name, step, call, ...leaksOf(leaks) }) };
}
