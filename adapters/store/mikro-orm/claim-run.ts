import type { RunStore } from '../../../core/ports/store.ts';
import type { ClaimedRun } from '../../../core/run/types.ts';
import { runClaimed } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import type { Database } from './database.ts';
import type { RunRecord } from './entities.ts';
import { toRun } from './rows.ts';

/**
 * S1 in one statement: the oldest queued run whose thread has no active run and no older queued one, and whose actor has room, becomes
 * `running` with the next fence. The write transaction serialises claimers; the unique index `runs_one_active_per_thread` is the second
 * guard, and the `state` in the outer condition the third.
 */
const CLAIM = `
update runs
set state = 'running', fence = fence + 1, lease_holder = ?1, lease_until_ms = ?2, lease_ms = ?3,
    deadline_ms = coalesce(deadline_ms, ?4)
where state = 'queued' and id = (
  select candidate.id
  from runs candidate
  where candidate.state = 'queued'
    and not exists (
      select 1 from runs active
      where active.thread = candidate.thread and active.state in ('running', 'parked', 'cancelling'))
    and not exists (
      select 1 from runs older
      where older.thread = candidate.thread and older.state = 'queued' and older.position < candidate.position)
    and (
      select count(*) from runs mine
      where mine.tenant = candidate.tenant and mine.actor = candidate.actor
        and mine.state in ('running', 'cancelling')) < ?5
  order by candidate.position
  limit 1)
returning *`;

const ADD_ATTEMPT = 'insert into attempts (run, fence, holder, started_at_ms) values (?, ?, ?, ?)';

/** Gives the next run to `holder`, or nothing; the attempt and its event are part of the same transaction. */
export async function claimRun(db: Database, claim: Parameters<RunStore['claim']>[0]): Promise<ClaimedRun | undefined> {
  const { holder, nowMs, leaseMs, deadlineMs, perUser } = claim;
  requireStorable(holder);
  return db.write(async (tx) => {
    const row = await tx.get<RunRecord>(CLAIM, [holder, nowMs + leaseMs, leaseMs, deadlineMs, perUser]);
    if (row === undefined) return undefined;
    const run = toRun(row) as ClaimedRun;
    await tx.run(ADD_ATTEMPT, [run.id, run.fence, holder, nowMs]);
    await appendEvent(db, tx, runClaimed(run), nowMs);
    return run;
  });
}
