import type { Decision, Obligation } from './types.ts';

/** What a decision comes to, without the circumstances of its making. */
export type Outcome = Pick<Decision, 'effect' | 'obligations'>;

const RANK = { deny: 0, ask: 1, allow: 2 } as const;
const LEAK_RANK = { warn: 0, redact: 1, block: 2 } as const;
const CLASS_RANK = { pure: 0, idempotent: 1, once: 2 } as const;

/** True when `after` lets something happen that `before` did not: a higher effect, or the same one with an obligation gone or weakened. */
export function isLooser(before: Outcome, after: Outcome): boolean {
  if (before.effect !== after.effect) return RANK[after.effect] > RANK[before.effect];
  if (after.effect === 'deny') return false;
  const weakened = before.obligations.some((held) => {
    const now = after.obligations.find(({ kind }) => kind === held.kind);
    return now === undefined ? held.kind !== 'effect_class' : isWeaker(now, held);
  });
  // An effect class that is lowered lets a command run twice; where none is named the capability's own holds.
  const named = before.obligations.some(({ kind }) => kind === 'effect_class');
  const lowered = !named && after.obligations.some((obligation) => obligation.kind === 'effect_class' && obligation.class !== 'once');
  return weakened || lowered;
}

/** True when the two differ in effect or obligations. */
export const differs = (before: Outcome, after: Outcome): boolean => isLooser(before, after) || isLooser(after, before);

/** Both of one kind. */
function isWeaker(now: Obligation, held: Obligation): boolean {
  const [a, b] = [strengthsOf(now), strengthsOf(held)];
  return a.some((strength, at) => strength < (b[at] ?? 0));
}

function strengthsOf(obligation: Obligation): readonly number[] {
  switch (obligation.kind) {
    case 'output_limit':
      return [-obligation.bytes];
    case 'reserve':
      return [-obligation.wallMs];
    case 'effect_class':
      return [CLASS_RANK[obligation.class]];
    case 'leaks':
      return [LEAK_RANK[obligation.exact], LEAK_RANK[obligation.shapes]];
    case 'redact':
    case 'audit':
      return [];
  }
}
