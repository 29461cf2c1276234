import { eventOf } from '../capability/reply.ts';
import { StoreError } from '../errors.ts';
import type { Broker } from '../ports/broker.ts';
import type { Store } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';
import { pause } from './pause.ts';
import type { Run } from './types.ts';

export interface CredentialGateDeps {
  readonly store: Pick<Store, 'runs'>;
  readonly broker: Broker;
  readonly clock: Clock;
  readonly onError: (error: unknown, run: string | undefined) => void;
}

/** A broker that has not answered by then is asked again in the next round: who waits behind is not to wait for one credential's store. */
const ASK_MS = 5000;

/**
 * Puts every run back into the queue whose gate is a credential that is there by now. Asked at each sweep instead of told by the broker: a
 * credential that came while no kernel ran, or through another one, opens the gate all the same. The call is decided anew. Of one about which
 * the broker fails or says nothing for 5 s the gate stays shut; the others are looked at all the same.
 *
 * @param until - aborted when the kernel closes
 * @returns how many gates were opened
 */
export async function openCredentialGates(deps: CredentialGateDeps, nowMs: number, until: AbortSignal): Promise<number> {
  const { store, onError } = deps;
  let opened = 0;
  for (const run of await store.runs.parkedAt('credential')) {
    if (until.aborted) break;
    const recipe = run.gate?.ref ?? '';
    try {
      if (await isMissing(deps, run, recipe, until)) continue;
    } catch (error) {
      onError(error, run.id);
      continue;
    }
    const event = eventOf({ ...run, run: run.id }, 'run.woken', { gate: 'credential', recipe });
    await store.runs.move(run.id, { from: ['parked'], to: 'queued', event, nowMs }).catch(unlessMoved);
    opened += 1;
  }
  return opened;
}

async function isMissing({ broker, clock }: CredentialGateDeps, run: Run, recipe: string, until: AbortSignal): Promise<boolean> {
  const answered = new AbortController();
  const late = pause(clock, ASK_MS, AbortSignal.any([until, answered.signal])).then(() => true);
  try {
    return await Promise.race([broker.isMissing({ tenant: run.tenant, user: run.actor }, recipe), late]);
  } finally {
    answered.abort();
  }
}

/** Somebody cancelled it in between. */
function unlessMoved(error: unknown): void {
  if (!(error instanceof StoreError && error.code === 'illegal_transition')) throw error;
}
