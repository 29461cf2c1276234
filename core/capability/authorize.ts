import { CallError } from '../errors.ts';
import { digestOf, type Json } from '../json.ts';
import { CONTRACT_VERSION } from '../policy/contracts.ts';
import type { CallPolicyInput, Decision, PolicyEngine, PolicyInput } from '../policy/types.ts';
import type { CallCredential } from '../ports/broker.ts';
import type { Clock } from '../seams/clock.ts';
import { ILL_FORMED_ARGS, storableFault } from './arguments.ts';
import { type CapabilityDescriptor, descriptorOf } from './descriptors.ts';
import { obligationFault } from './floor.ts';
import type { CallRequest, CallScope } from './types.ts';

export interface AuthorizeDeps {
  readonly policy: PolicyEngine;
  readonly clock: Clock;
  /** Checks compiled from the descriptors' schemas. */
  readonly argumentFault: (descriptor: CapabilityDescriptor, args: Json) => string | undefined;
  /** What of a question is kept beside its digest; absent means the question itself, its secrets replaced. */
  readonly logInput?: 'digest' | 'redacted';
}

/** A request whose form is right: known capability, bounded and valid arguments, a caller the descriptor names. */
export interface BoundCall {
  readonly descriptor: CapabilityDescriptor;
  readonly request: CallRequest;
  readonly argsDigest: string;
}

/** @throws CallError `unknown_capability` `invalid_arguments` `caller_not_allowed`; nothing has happened then */
export function bindCall(deps: AuthorizeDeps, scope: CallScope, request: CallRequest): BoundCall {
  const descriptor = descriptorOf(request.capability);
  if (descriptor === undefined)
    throw new CallError('unknown_capability', `No capability of that name: ${String(request.capability).slice(0, 64)}`);
  const fault =
    (request.args === ILL_FORMED_ARGS ? 'ill_formed_text' : undefined) ??
    storableFault(request.args) ??
    deps.argumentFault(descriptor, request.args);
  if (fault !== undefined) throw new CallError('invalid_arguments', `${descriptor.name}: ${fault}`);
  if (!descriptor.callers.includes(scope.caller))
    throw new CallError('caller_not_allowed', `${descriptor.name} is not for a caller of kind ${scope.caller}`);
  const identity = descriptor.identity?.(request.args) ?? request.args;
  return { descriptor, request, argsDigest: digestOf('outwork.args', { capability: descriptor.name, args: identity }) };
}

export interface Verdict {
  readonly decision: Decision;
  readonly inputDigest: string;
  readonly input: CallPolicyInput;
  readonly credential: CallCredential;
}

/** What the kernel knows of a run and of this call beside its scope. */
export interface CallFacts extends Pick<CallPolicyInput, 'callsUsed' | 'callsLeft' | 'sandboxOrigins' | 'otherActors'> {
  readonly credential: CallCredential;
}

/** Asks policy. Whatever the answer lacks becomes a deny with a reason. */
export function decideCall(deps: AuthorizeDeps, scope: CallScope, call: BoundCall, facts: CallFacts): Verdict {
  const nowMs = deps.clock.now();
  const input: CallPolicyInput = {
    kind: 'call',
    version: CONTRACT_VERSION,
    scope: { tenant: scope.tenant, user: scope.user, thread: scope.thread, run: scope.run },
    actor: { user: scope.user, roles: scope.roles },
    origin: scope.origin,
    placement: scope.placement,
    engine: scope.engine,
    wall: scope.wall,
    time: String(nowMs),
    capability: call.descriptor.name,
    caller: scope.caller,
    effectClass: call.descriptor.effectClass,
    args: call.descriptor.project(call.request.args),
    argsDigest: call.argsDigest,
    wallMsLeft: Math.max(0, Math.round(scope.deadlineMs - nowMs)),
    callsUsed: facts.callsUsed,
    callsLeft: facts.callsLeft,
    sandboxOrigins: facts.sandboxOrigins,
    otherActors: facts.otherActors,
    credential: facts.credential.credential,
    recipe: facts.credential.recipe,
  };
  return { decision: settled(deps.policy.decide(input)), inputDigest: inputDigestOf(input), input, credential: facts.credential };
}

/** Names a question: the same for equal questions, whatever is kept of them. */
export const inputDigestOf = (input: PolicyInput): string => digestOf('outwork.policy-input', input);

function settled(decision: Decision): Decision {
  const fault = obligationFault(decision);
  if (fault !== undefined) return { ...decision, effect: 'deny', obligations: [], reasons: [fault] };
  return decision;
}
