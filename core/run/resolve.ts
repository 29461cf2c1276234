import { eventOf } from '../capability/reply.ts';
import { UsageError } from '../errors.ts';
import type { Store } from '../ports/store.ts';
import type { Run } from './types.ts';

/**
 * A person ends an `unknown` call: `done` records that it happened, `not-done` lets it run again, `abort` fails the run.
 * The run wakes when no further call of it is unknown; until then it stays parked on the next one.
 * @throws UsageError `not_found` `conflict`
 */
export async function resolveRun(store: Store, id: string, as: 'done' | 'not-done' | 'abort', nowMs: number): Promise<Run> {
  const run = await store.runs.get(id);
  if (run === undefined) throw new UsageError('not_found', `No run ${id}`);
  if (run.state !== 'parked' || run.gate?.kind !== 'unknown')
    throw new UsageError('conflict', `Run ${id} is not parked on an unknown call (it is ${run.state})`);
  const scope = { tenant: run.tenant, thread: run.thread, run: run.id };
  if (as === 'abort') {
    const failure = 'aborted_by_person';
    return store.runs.move(id, {
      from: ['parked'],
      to: 'failed',
      failure,
      event: eventOf(scope, 'run.failed', { code: failure, call_id: run.gate.ref }),
      nowMs,
    });
  }
  await store.calls.resolve(run.gate.ref, as, eventOf(scope, 'call.resolved', { call_id: run.gate.ref, as }), nowMs);
  // A further unknown call parks the run again at its next claim, with its own evidence.
  return store.runs.move(id, { from: ['parked'], to: 'queued', event: eventOf(scope, 'run.woken', { gate: 'unknown', as }), nowMs });
}
