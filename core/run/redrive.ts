import { unknownGate } from '../capability/reply.ts';
import type { RunDeps } from './execute-run.ts';
import type { ClaimedRun, Gate } from './types.ts';

/** Outcome of an attempt that ended by itself; anything else may have left processes, tokens and open requests behind. */
export const CLEAN_OUTCOMES: readonly string[] = ['parked'];

/**
 * Before an attempt is seated, in this order: the fence bump has revoked the run's tokens; its requests are cut; what its sandbox still
 * runs is ended, by the engine's proof; only then is the ledger judged.
 *
 * @returns the gate to park on when the end of a call is not known
 */
export async function prepareRedrive(deps: RunDeps, run: ClaimedRun): Promise<Gate | undefined> {
  if (run.fence === 1) return undefined;
  deps.tokens.revoke({ run: run.id, belowFence: run.fence });
  await deps.egress.revoke(run.id);
  const previous = (await deps.store.runs.attempts(run.id)).find((attempt) => attempt.fence === run.fence - 1);
  if (previous?.placement !== undefined && !CLEAN_OUTCOMES.includes(previous.outcome ?? '')) {
    await deps.placements.get(previous.placement)?.recycle({ id: run.id, tenant: run.tenant, user: run.actor });
  }
  await deps.store.calls.judge({ run: run.id, fence: run.fence }, deps.clock.now());
  const rows = await deps.store.calls.list(run.id);
  deps.reservations.resume(
    run.id,
    rows.map(({ key }) => key),
  );
  const unknown = rows.find((row) => row.state === 'unknown');
  return unknown === undefined ? undefined : unknownGate(unknown);
}
