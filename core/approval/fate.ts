import type { BoundCall, Verdict } from '../capability/authorize.ts';
import type { Terms } from '../capability/floor.ts';
import { evidenceLine } from '../capability/redact.ts';
import { credentialGate } from '../capability/reply.ts';
import type { Reason } from '../capability/types.ts';
import type { NewEvent } from '../events.ts';
import type { OpenCall } from '../ports/store.ts';
import type { LiveRun } from '../run/live-runs.ts';
import type { Gate } from '../run/types.ts';
import { type Consent, type ConsultDeps, consult } from './consult.ts';

/** What becomes of a call: policy's own word, or a person's where policy asks for one. */
export type Fate =
  | { readonly kind: 'go'; readonly consent?: Extract<Consent, { kind: 'approved' }> }
  | { readonly kind: 'refused'; readonly reasons: readonly Reason[] }
  | Extract<Consent, { kind: 'ask' }>
  /** Its credential is missing. */
  | { readonly kind: 'wait'; readonly recipe: string; readonly hint: string; readonly gate: Gate };

/** Longest hint of a broker that is kept. */
const HINT_CHARACTERS = 400;

/**
 * Deny is final, and says nothing of credentials. A missing credential is waited for before anybody is asked. Allow needs nobody; an ask is
 * held to an approval of exactly this call, or becomes one.
 * @throws SandboxError, StoreError
 */
export async function fateOf(
  deps: ConsultDeps,
  run: LiveRun,
  call: BoundCall,
  verdict: Verdict,
  terms: Terms,
  secrets: readonly string[],
): Promise<Fate> {
  const { effect, reasons } = verdict.decision;
  if (effect === 'deny') return { kind: 'refused', reasons };
  const { credential } = verdict;
  if (credential.credential === 'missing') {
    const missing = { recipe: credential.recipe, hint: evidenceLine(credential.hint, secrets, HINT_CHARACTERS) };
    return { kind: 'wait', ...missing, gate: credentialGate(missing) };
  }
  if (effect === 'allow') return { kind: 'go' };
  const { scope, seat, signal } = run;
  const consent = await consult(deps, { scope, call, verdict, terms, tools: seat.tools, secrets, signal });
  return consent.kind === 'approved' ? { kind: 'go', consent } : consent;
}

/** The part of the ledger's write that a fate decides. */
export function writeOf(
  fate: Fate,
  { id, deadlineMs }: { readonly id: string; readonly deadlineMs: number },
  closing: OpenCall['closing'],
): Pick<OpenCall, 'permit' | 'outcome' | 'ask' | 'gate' | 'approval' | 'closing'> {
  if (fate.kind === 'ask') return { ask: fate.ask };
  if (fate.kind === 'wait') return { gate: fate.gate };
  if (fate.kind === 'refused') return { outcome: { kind: 'denied', reasons: fate.reasons } };
  return {
    permit: { id, deadlineMs },
    ...(fate.consent === undefined ? {} : { approval: fate.consent.approval }),
    ...(closing === undefined ? {} : { closing }),
  };
}

/** The event of that write, and what it tells beside the call's own name. */
export function toldOf(
  fate: Fate,
  { decision: { effect } }: Verdict,
  sealed: { readonly id: string; readonly terms: Terms },
): { readonly type: NewEvent['type']; readonly data: NewEvent['data'] } {
  const codes = (reasons: readonly Reason[]) => reasons.map(({ code }) => code);
  if (fate.kind === 'refused') return { type: 'call.denied', data: { effect, codes: codes(fate.reasons) } };
  if (fate.kind === 'go') return { type: 'call.dispatched', data: { permit: sealed.id, effect_class: sealed.terms.effectClass } };
  if (fate.kind === 'wait') return { type: 'credential.missing', data: { recipe: fate.recipe, hint: fate.hint } };
  const { id: approval, fingerprint, expiresAtMs, reasons, shown } = fate.ask;
  const warnings = shown.warnings.map(({ kind }) => kind);
  return { type: 'approval.requested', data: { approval, fingerprint, codes: codes(reasons), warnings, expires_at_ms: expiresAtMs } };
}
