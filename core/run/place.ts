import { inputDigestOf } from '../capability/authorize.ts';
import type { Reason } from '../capability/types.ts';
import { placementFor } from '../config.ts';
import { newId } from '../ids.ts';
import { CONTRACT_VERSION } from '../policy/contracts.ts';
import { loggedInput } from '../policy/log.ts';
import type { PlacementPolicyInput } from '../policy/types.ts';
import type { Placement } from '../ports/placement.ts';
import type { RunDeps } from './execute-run.ts';
import type { ClaimedRun, Role } from './types.ts';

export type Placed = {
  /** Id of the decision; undefined when there was nothing to decide. */
  readonly decision: string | undefined;
} & ({ readonly placement: Placement; readonly harness: string } | { readonly failure: string; readonly reasons: readonly Reason[] });

/**
 * Config chooses the placement (run → user → tenant → global), policy decides it; the decision is durable before anything follows from it.
 * A refused placement ends the run: nothing may run where policy does not want it.
 *
 * @throws StoreError `stale_fence`
 */
export async function choosePlacement(
  deps: Pick<RunDeps, 'config' | 'placements' | 'policy' | 'clock' | 'store' | 'logInput'>,
  run: ClaimedRun,
  roles: readonly Role[],
): Promise<Placed> {
  const { config, placements, policy, clock } = deps;
  const name = placementFor(config, { tenant: run.tenant, user: run.actor, run: run.placement });
  const harness = run.harness ?? config.harness;
  const placement = placements.get(name);
  if (placement === undefined) return { decision: undefined, failure: 'placement_unavailable', reasons: [] };
  const nowMs = clock.now();
  const input: PlacementPolicyInput = {
    kind: 'placement',
    version: CONTRACT_VERSION,
    scope: { tenant: run.tenant, user: run.actor, thread: run.thread, run: run.id },
    actor: { user: run.actor, roles },
    origin: run.origin,
    placement: name,
    engine: placement.engine,
    wall: placement.wall,
    time: String(nowMs),
    harness,
    profile: config.profile,
  };
  const decision = policy.decide(input);
  const id = newId('decision', nowMs);
  const row = { id, run: run.id, kind: 'placement', capability: name, inputDigest: inputDigestOf(input), decision, atMs: nowMs } as const;
  await deps.store.decisions.add({ ...row, ...loggedInput(deps, input, []) }, { run: run.id, fence: run.fence });
  if (decision.effect === 'allow') return { decision: id, placement, harness };
  return { decision: id, failure: decision.reasons[0]?.code ?? 'placement_denied', reasons: decision.reasons };
}
