import type { Reason } from '../capability/types.ts';
import { placementFor } from '../config.ts';
import type { PlacementPolicyInput } from '../policy/types.ts';
import type { Placement } from '../ports/placement.ts';
import type { RunDeps } from './execute-run.ts';
import type { ClaimedRun, Role } from './types.ts';

/**
 * Config chooses the placement (run → user → tenant → global), policy decides it.
 * A refused placement ends the run: nothing may run where policy does not want it.
 */
export function choosePlacement(
  { config, placements, policy, clock }: Pick<RunDeps, 'config' | 'placements' | 'policy' | 'clock'>,
  run: ClaimedRun,
  roles: readonly Role[],
): { placement: Placement; harness: string } | { failure: string; reasons: readonly Reason[] } {
  const name = placementFor(config, { tenant: run.tenant, user: run.actor, run: run.placement });
  const harness = run.harness ?? config.harness;
  const placement = placements.get(name);
  if (placement === undefined) return { failure: 'placement_unavailable', reasons: [] };
  const input: PlacementPolicyInput = {
    kind: 'placement',
    version: 1,
    scope: { tenant: run.tenant, user: run.actor, thread: run.thread, run: run.id },
    actor: { user: run.actor, roles },
    origin: run.origin,
    placement: name,
    engine: placement.engine,
    wall: placement.wall,
    time: String(clock.now()),
    harness,
    profile: config.profile,
  };
  const decision = policy.decide(input);
  if (decision.effect === 'allow') return { placement, harness };
  return { failure: decision.reasons[0]?.code ?? 'placement_denied', reasons: decision.reasons };
}
