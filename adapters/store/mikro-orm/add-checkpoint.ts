import type { StoreEffect } from '../../../core/ports/store.ts';
import type { Run } from '../../../core/run/types.ts';
import { checkpointDigest, KEPT_CHECKPOINTS } from '../checkpoint-seal.ts';
import type { Database, Tx } from './database.ts';

/** Ledger position and safety are read in the same statement that stores them, after the call that saves the checkpoint is `done`. */
const INSERT = `
insert into checkpoints (run, position, id, fence, schema_name, version, ledger_position, safe, sha256, created_at_ms, body)
values (?1, (select coalesce(max(position), 0) + 1 from checkpoints where run = ?1), ?2, ?3, ?4, ?5,
  (select count(*) from calls where run = ?1 and state = 'done'),
  not exists (select 1 from calls where run = ?1 and state = 'dispatched' and effect_class = 'once'),
  ?6, ?7, ?8)`;

const PRUNE = `
delete from checkpoints
where run = ?1 and position < (
  select position from checkpoints where run = ?1 and safe order by position desc limit 1 offset ?2)`;

/** Stores a checkpoint of the run's current attempt and drops those that no redrive would come back to. */
export async function addCheckpoint(
  db: Database,
  tx: Tx,
  run: Run,
  { schema, version, body }: Extract<StoreEffect, { kind: 'checkpoint' }>,
  nowMs: number,
): Promise<void> {
  const sha256 = checkpointDigest({ run: run.id, schema, version, body });
  await tx.run(INSERT, [run.id, db.newId('checkpoint', nowMs), run.fence, schema, version, sha256, nowMs, body]);
  await tx.run(PRUNE, [run.id, KEPT_CHECKPOINTS - 1]);
}
