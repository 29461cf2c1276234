import type { BoundCall, Verdict } from '../capability/authorize.ts';
import type { Terms } from '../capability/floor.ts';
import type { CallScope, Reason, ShellExecArgs } from '../capability/types.ts';
import type { CapacityName } from '../config.ts';
import { newId } from '../ids.ts';
import { SAFETY } from '../limits.ts';
import type { PolicyEngine } from '../policy/types.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { Store } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';
import { stillApproved } from './answer.ts';
import { fingerprintOf } from './fingerprint.ts';
import { type Captured, captureFiles, keptBodies, placeFiles, textOf } from './pinned-files.ts';
import { referencesOf } from './references.ts';
import { shownOf } from './shown.ts';
import { type Approval, type Ceiling, LIVE_STATES, type NewApproval, type ReferencedFile } from './types.ts';

export interface ConsultDeps {
  readonly store: Pick<Store, 'approvals' | 'decisions' | 'users'>;
  readonly clock: Clock;
  readonly policy: Pick<PolicyEngine, 'decide'>;
  readonly capacity: Readonly<Record<CapacityName, number>>;
  readonly logInput?: 'digest' | 'redacted';
}

export interface Question {
  readonly scope: CallScope;
  readonly call: BoundCall;
  readonly verdict: Verdict;
  readonly terms: Terms;
  readonly tools: SandboxTools;
  readonly secrets: readonly string[];
  readonly signal: AbortSignal;
}

/** What stands between an `ask` and its call. */
export type Consent =
  /** Nobody has answered: park on this. */
  | { readonly kind: 'ask'; readonly ask: NewApproval }
  /** Somebody said yes to exactly this; `argv` runs the bytes they said it to. */
  | { readonly kind: 'approved'; readonly approval: Pick<Approval, 'id' | 'fingerprint'>; readonly argv: readonly string[] | undefined }
  /** It cannot be asked. */
  | { readonly kind: 'refused'; readonly reasons: readonly Reason[] };

/**
 * Whether the call that policy asks about has been approved as it is now. An answer to anything else (other arguments, another ceiling,
 * other rules or data, other bytes), or by somebody who may not give it any more, is none: the store withdraws it when the new ask is made.
 * @throws SandboxError, StoreError
 */
export async function consult(deps: ConsultDeps, question: Question): Promise<Consent> {
  const { scope, call } = question;
  const live = await deps.store.approvals.live(scope.run, call.request.key);
  if (live !== undefined) {
    if (isOver(live, deps.clock.now())) {
      await deps.store.approvals.expire(deps.clock.now());
      return refused(EXPIRED);
    }
    const known = await approvedAs(deps, question, live);
    if (known !== undefined) return known;
  }
  const waiting = await deps.store.approvals.list({ run: scope.run, states: LIVE_STATES, limit: SAFETY.approvalsPerRun });
  if (waiting.filter(({ id }) => id !== live?.id).length >= SAFETY.approvalsPerRun) return refused(TOO_MANY);
  const captured = await capture(question);
  if ('code' in captured) return refused(captured);
  return asked(deps, question, captured, captured.codeInArgument);
}

const isOver = ({ state, expiresAtMs, useByMs }: Approval, nowMs: number): boolean =>
  nowMs > (state === 'approved' ? (useByMs ?? 0) : expiresAtMs);

/** The live ask, when it is of this very call: its own files, as the kernel kept them, not as the workspace holds them now. */
async function approvedAs(deps: ConsultDeps, question: Question, live: Approval): Promise<Consent | undefined> {
  const references = referencesIn(question);
  const bodies = await keptBodies(deps.store.approvals, live.files);
  if ('code' in references || bodies === undefined || !sameFiles(references.files, live.files)) return undefined;
  const texts = bodies.map((body) => textOf(Buffer.from(body, 'base64')));
  const kept = live.files.map(({ sha256 }, at) => ({ sha256, body: bodies[at] ?? '' }));
  const again = asked(deps, question, { files: live.files, kept, texts }, references.codeInArgument);
  if (again.kind !== 'ask' || again.ask.fingerprint !== live.fingerprint) return undefined;
  if (live.state === 'pending') return again;
  const { id, fingerprint } = live;
  const args = question.call.request.args as unknown as ShellExecArgs;
  const argv = live.files.length === 0 ? undefined : await placeFiles(question.tools, args, live.files, bodies, question.signal);
  // After the sandbox has had its time: what it delays is not held to what was so before.
  if (!(await stillApproved({ ...deps, decide: async (input) => deps.policy.decide(input) }, live))) return undefined;
  return { kind: 'approved', approval: { id, fingerprint }, argv };
}

const sameFiles = (references: readonly { argument: number; path: string }[], files: readonly ReferencedFile[]): boolean =>
  references.length === files.length &&
  references.every(({ argument, path }, at) => files[at]?.argument === argument && files[at]?.path === path);

const referencesIn = ({ call }: Question) =>
  call.descriptor.runsIn === 'command' ? referencesOf(call.request.args as unknown as ShellExecArgs) : { files: [], codeInArgument: false };

async function capture(question: Question): Promise<(Captured & { readonly codeInArgument: boolean }) | Reason> {
  const references = referencesIn(question);
  if ('code' in references) return references;
  const captured = await captureFiles(question.tools, references.files, question.secrets, question.signal);
  return 'code' in captured ? captured : { ...captured, codeInArgument: references.codeInArgument };
}

const TOO_MANY: Reason = {
  code: 'approval_limit',
  message: `At most ${SAFETY.approvalsPerRun} asks of one run wait at once: stop, and let a person answer`,
};

/** The store has closed the call's row with the same words by then; they are for the one write that finds it closed. */
const EXPIRED: Reason = { code: 'approval_expired', message: 'Nobody approved this in time, or the approval was not used in time.' };

const refused = (reason: Reason): Consent => ({ kind: 'refused', reasons: [reason] });

function asked({ clock, capacity }: ConsultDeps, question: Question, { files, kept, texts }: Captured, codeInArgument: boolean): Consent {
  const { scope, call, verdict, terms, secrets } = question;
  const { descriptor, request } = call;
  const { reasons, digests: made } = verdict.decision;
  const ceiling = ceilingOf(question, terms);
  const shown = shownOf({ scope, descriptor, args: request.args, ceiling, files, fileTexts: texts, reasons, codeInArgument, secrets });
  if ('code' in shown) return refused(shown);
  // Of a snapshot only what names it: how old it is, is not part of what was approved.
  const digests = { rules: made.rules, data: made.data };
  const { tenant, thread, run, user: actor } = scope;
  const bound = {
    tenant,
    thread,
    run,
    key: request.key,
    actor,
    capability: descriptor.name,
    args: request.args,
    ceiling,
    digests,
    files,
    shown,
  };
  const nowMs = clock.now();
  return {
    kind: 'ask',
    ask: {
      id: newId('approval', nowMs),
      roles: scope.roles,
      origin: scope.origin,
      args: verdict.input.args,
      fingerprint: fingerprintOf(bound),
      ceiling,
      digests,
      files,
      kept,
      shown,
      reasons,
      expiresAtMs: nowMs + capacity.approvalAnswerMs,
      useWithinMs: capacity.approvalUseMs,
    },
  };
}

/** A recipe is bound to the call whole, and no host is granted to it in this version: the ceiling says so, and will say what a lease narrows. */
const ceilingOf = ({ scope, call, verdict: { credential } }: Question, { outputBytes, reserveWallMs }: Terms): Ceiling => ({
  startedBy: call.descriptor.runsIn === 'command' && scope.placement !== 'host-loop-shell' ? 'executor' : 'kernel',
  leases: credential.credential === 'present' ? [{ recipe: credential.recipe, operations: [] }] : [],
  hosts: [],
  outputBytes,
  wallMs: reserveWallMs,
});
