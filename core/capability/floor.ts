import { DEFAULT_LEAK_TERMS, type LeakTerms } from '../leak/scrub.ts';
import { SAFETY } from '../limits.ts';
import type { CallPolicyInput, Decision, Obligation } from '../policy/types.ts';
import type { CapabilityDescriptor } from './descriptors.ts';
import type { EffectClass, Reason } from './types.ts';

/** What an allowed call is bound to. Redact and audit have no switch: every executing call gets both. */
export interface Terms {
  readonly outputBytes: number;
  readonly reserveWallMs: number;
  readonly effectClass: EffectClass;
  readonly leaks: LeakTerms;
}

const RANK: Readonly<Record<EffectClass, number>> = { pure: 0, idempotent: 1, once: 2 };

/**
 * The floor: redact, output limit, reserve and audit belong to every executing call. Obligations can tighten them, never remove them,
 * and only `shell.exec` without a credential may have its effect class lowered: what a credential is used for cannot be told from argv.
 */
export function termsOf(call: {
  readonly descriptor: CapabilityDescriptor;
  readonly decision: Decision;
  /** What the call would be given of secrets. */
  readonly credential: CallPolicyInput['credential'];
  /** The caller's own wish, or the default; clamped to [1 KiB, 1 MiB]. */
  readonly outputBytes: number;
  readonly wallMs: number;
}): Terms {
  const { descriptor, decision } = call;
  const lowers = descriptor.runsIn === 'command' && call.credential === 'none';
  let outputBytes = clampOutput(call.outputBytes);
  let reserveWallMs = call.wallMs;
  let effectClass = descriptor.effectClass;
  for (const obligation of decision.obligations) {
    if (obligation.kind === 'output_limit') outputBytes = Math.max(SAFETY.outputFloorBytes, Math.min(outputBytes, obligation.bytes));
    else if (obligation.kind === 'reserve') reserveWallMs = Math.min(reserveWallMs, obligation.wallMs);
    else if (obligation.kind === 'effect_class' && lowers && RANK[obligation.class] < RANK[effectClass]) effectClass = obligation.class;
  }
  return { outputBytes, reserveWallMs, effectClass, leaks: leakTermsOf(decision) };
}

/** The one contract of every limit on output (captured, saved, a background log): a positive integer, held to [1 KiB, 1 MiB]. */
export const clampOutput = (bytes: number): number => Math.min(SAFETY.outputBytes, Math.max(SAFETY.outputFloorBytes, bytes));

const STRICTNESS = { warn: 0, redact: 1, block: 2 } as const;

/** A live secret is redacted and a shape is told of, unless policy asks for more. */
function leakTermsOf(decision: Decision): LeakTerms {
  let { exact, shapes } = DEFAULT_LEAK_TERMS;
  for (const obligation of decision.obligations) {
    if (obligation.kind !== 'leaks') continue;
    if (STRICTNESS[obligation.exact] > STRICTNESS[exact]) exact = obligation.exact;
    if (STRICTNESS[obligation.shapes] > STRICTNESS[shapes]) shapes = obligation.shapes;
  }
  return { exact, shapes };
}

const KNOWN: Readonly<Record<Obligation['kind'], true>> = {
  redact: true,
  audit: true,
  output_limit: true,
  reserve: true,
  effect_class: true,
  leaks: true,
};

/** Why an allow cannot be carried out as written; a deny then, whichever engine decided. */
export function obligationFault(decision: Decision): Reason | undefined {
  const unknown = decision.obligations.find((obligation) => !Object.hasOwn(KNOWN, obligation.kind));
  return unknown === undefined
    ? undefined
    : {
        code: 'policy_unknown_obligation',
        message: `The decision carries an obligation this kernel does not know: ${String(unknown.kind)}`,
      };
}
