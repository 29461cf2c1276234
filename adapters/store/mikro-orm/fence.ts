import { StoreError, type StoreErrorCode } from '../../../core/errors.ts';
import type { AttemptRef, Run } from '../../../core/run/types.ts';
import type { Tx } from './database.ts';
import type { RunRecord } from './entities.ts';
import { toRun } from './rows.ts';

/** Only the attempt that now holds the run finds it by this. */
export const HELD_BY = "id = ? and fence = ? and state in ('running', 'cancelling')";

/**
 * S2. The run that `ref` holds, read inside the transaction that is going to write for it.
 * @throws StoreError `stale_fence`
 */
export async function requireHeld(tx: Tx, ref: AttemptRef): Promise<Run> {
  const row = await tx.get<RunRecord>(`select * from runs where ${HELD_BY}`, [ref.run, ref.fence]);
  if (row === undefined) throw staleFence(ref);
  return toRun(row);
}

export const staleFence = (ref: AttemptRef, code: StoreErrorCode = 'stale_fence'): StoreError =>
  new StoreError(code, `Attempt ${ref.fence} does not hold run ${ref.run}`);
