import { eventOf } from '../capability/reply.ts';
import { StoreError } from '../errors.ts';
import type { Broker } from '../ports/broker.ts';
import type { Store } from '../ports/store.ts';

/**
 * Puts every run back into the queue whose gate is a credential that is there by now. Asked at each sweep instead of told by the broker: a
 * credential that came while no kernel ran, or through another one, opens the gate all the same. The call is decided anew.
 */
export async function openCredentialGates(
  { store, broker }: { readonly store: Pick<Store, 'runs'>; readonly broker: Broker },
  nowMs: number,
): Promise<void> {
  for (const run of await store.runs.parkedAt('credential')) {
    const recipe = run.gate?.ref ?? '';
    if (await broker.isMissing({ tenant: run.tenant, user: run.actor }, recipe)) continue;
    const event = eventOf({ ...run, run: run.id }, 'run.woken', { gate: 'credential', recipe });
    await store.runs.move(run.id, { from: ['parked'], to: 'queued', event, nowMs }).catch(unlessMoved);
  }
}

/** Somebody cancelled it in between. */
function unlessMoved(error: unknown): void {
  if (!(error instanceof StoreError && error.code === 'illegal_transition')) throw error;
}
