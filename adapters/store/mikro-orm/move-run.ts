import { StoreError } from '../../../core/errors.ts';
import type { RunChange } from '../../../core/ports/store.ts';
import type { Run } from '../../../core/run/types.ts';
import { landing } from '../run-transition.ts';
import type { Tx } from './database.ts';
import type { RunRecord } from './entities.ts';
import { toRun } from './rows.ts';

const LAND = `
update runs
set state = ?, gate = ?, failure = ?, ended_at_ms = ?, cancel_requested = ?, deadline_ms = ?, reclaims = reclaims + ?,
    lease_holder = iif(?, lease_holder, null), lease_until_ms = iif(?, lease_until_ms, null), lease_ms = iif(?, lease_ms, null)
where id = ? and fence = ? and state = ?
returning *`;

const LAST_END = 'select ended_at_ms from attempts where run = ? and fence = ?';

const END_ATTEMPT = 'update attempts set ended_at_ms = ?, outcome = ? where run = ? and fence = ? and ended_at_ms is null';

/** Moves a run that the caller has read in this transaction and whose transition it has checked. A held run that stays held keeps its lease. */
export async function landRun(
  tx: Tx,
  run: Run,
  change: Pick<RunChange, 'to' | 'gate' | 'failure'> & { readonly reclaim?: boolean | undefined },
  nowMs: number,
): Promise<Run> {
  const last = run.state === 'parked' ? await tx.get<{ ended_at_ms: number | null }>(LAST_END, [run.id, run.fence]) : undefined;
  const { state, gate, failure, endedAtMs, cancelRequested, deadlineMs } = landing(run, change, nowMs, last?.ended_at_ms ?? undefined);
  const keep = state === 'cancelling' ? 1 : 0;
  const row = await tx.get<RunRecord>(LAND, [
    state,
    gate === undefined ? null : JSON.stringify(gate),
    failure,
    endedAtMs,
    cancelRequested ? 1 : 0,
    deadlineMs,
    change.reclaim === true ? 1 : 0,
    keep,
    keep,
    keep,
    run.id,
    run.fence,
    run.state,
  ]);
  return toRun(row as RunRecord);
}

export async function endAttempt(tx: Tx, run: Run, outcome: string, nowMs: number): Promise<void> {
  await tx.run(END_ATTEMPT, [nowMs, outcome, run.id, run.fence]);
}

/** @throws StoreError `not_found` */
export async function requireRun(tx: Tx, id: string): Promise<Run> {
  const row = await tx.get<RunRecord>('select * from runs where id = ?', [id]);
  if (row === undefined) throw new StoreError('not_found', `There is no run ${id}`);
  return toRun(row);
}
