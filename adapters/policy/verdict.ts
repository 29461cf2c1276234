import type { Reason } from '../../core/capability/types.ts';
import type { Decision, Obligation } from '../../core/policy/types.ts';
import { fromRegoObligation } from './marshal.ts';

/** A decision without the circumstances of its making. */
export type Verdict = Pick<Decision, 'effect' | 'reasons' | 'obligations'>;

/** Why the engine itself denies; the codes of rules are the rules' own. */
export type EngineDenial =
  | 'input_out_of_bounds'
  | 'policy_not_ready'
  | 'policy_timeout'
  | 'policy_trap'
  | 'policy_memory'
  | 'policy_undefined'
  | 'policy_malformed'
  | 'policy_unknown_obligation';

export const denial = (code: EngineDenial, message: string): Verdict => ({ effect: 'deny', reasons: [{ code, message }], obligations: [] });

/** @param fault - why the question may not be shown to policy */
export const notAsked = (fault: string): Verdict => denial('input_out_of_bounds', `Policy was not asked: ${fault}.`);

/**
 * Reads the result set of an evaluation: exactly one document of the exact form `{effect, reasons, obligations}`. Everything else is a
 * deny. What comes back does not depend on the order in which the engine listed reasons and obligations.
 *
 * @param text - JSON of the result set, `[{"result": …}]`
 */
export function readVerdict(text: string): Verdict {
  const results = parse(text);
  if (!Array.isArray(results)) return malformed('is not a result set');
  if (results.length === 0) return denial('policy_undefined', 'Policy gave no decision.');
  if (results.length > 1 || !hasExactly(results[0], ['result'])) return malformed('is not one result');
  const document: unknown = results[0].result;
  if (!hasExactly(document, ['effect', 'obligations', 'reasons'])) return malformed('is not {effect, reasons, obligations}');
  const { effect } = document;
  if (effect !== 'allow' && effect !== 'ask' && effect !== 'deny') return malformed('has an unknown effect');
  const reasons = readReasons(document.reasons);
  if (reasons === undefined) return malformed('has no well-formed reasons');
  if (!Array.isArray(document.obligations) || document.obligations.length > MAX_ITEMS) return malformed('has no list of obligations');
  const obligations: Obligation[] = [];
  for (const item of document.obligations) {
    const obligation = fromRegoObligation(item);
    if (obligation === 'malformed') return malformed('has a malformed obligation');
    if (obligation === 'unknown') {
      return denial('policy_unknown_obligation', 'Policy asked for an obligation that this kernel does not know.');
    }
    obligations.push(obligation);
  }
  return { effect, reasons, obligations: effect === 'deny' ? [] : strictest(obligations) };
}

const MAX_ITEMS = 100;
const CODE = /^[a-z][a-z0-9_]{0,63}$/;

function readReasons(value: unknown): readonly Reason[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ITEMS) return undefined;
  const reasons: Reason[] = [];
  for (const item of value) {
    if (!hasExactly(item, ['code', 'message'])) return undefined;
    const { code, message } = item;
    if (typeof code !== 'string' || !CODE.test(code) || typeof message !== 'string' || message === '') return undefined;
    reasons.push({ code, message });
  }
  return reasons.sort((a, b) => compare(a.code, b.code) || compare(a.message, b.message));
}

const LEAK_RANK = { warn: 0, redact: 1, block: 2 } as const;
const CLASS_RANK = { pure: 0, idempotent: 1, once: 2 } as const;

/** One obligation of a kind, the strictest of those named, in the order of their kinds. */
function strictest(obligations: readonly Obligation[]): readonly Obligation[] {
  const byKind = new Map<Obligation['kind'], Obligation>();
  for (const next of obligations) {
    const held = byKind.get(next.kind);
    byKind.set(next.kind, held === undefined ? next : stricterOf(held, next));
  }
  return [...byKind.values()].sort((a, b) => compare(a.kind, b.kind));
}

function stricterOf(a: Obligation, b: Obligation): Obligation {
  if (a.kind === 'output_limit' && b.kind === 'output_limit') return a.bytes <= b.bytes ? a : b;
  if (a.kind === 'reserve' && b.kind === 'reserve') return a.wallMs <= b.wallMs ? a : b;
  if (a.kind === 'effect_class' && b.kind === 'effect_class') return CLASS_RANK[a.class] >= CLASS_RANK[b.class] ? a : b;
  if (a.kind === 'leaks' && b.kind === 'leaks') {
    const shapes = LEAK_RANK[a.shapes] >= LEAK_RANK[b.shapes] ? a.shapes : b.shapes;
    return { kind: 'leaks', exact: a.exact === 'block' ? a.exact : b.exact, shapes };
  }
  return a;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function hasExactly(value: unknown, keys: readonly string[]): value is Record<string, unknown> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false;
  const found = Object.keys(value);
  return found.length === keys.length && keys.every((key) => Object.hasOwn(value, key));
}

const malformed = (problem: string): Verdict => denial('policy_malformed', `The decision document ${problem}.`);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
