import type { Run } from '../../../core/run/types.ts';
import { leaseExpired } from '../own-events.ts';
import { afterLeaseExpiry } from '../run-transition.ts';
import { appendEvent } from './append-event.ts';
import { tidyEnded } from './approval-effects.ts';
import type { Database } from './database.ts';
import type { RunRecord } from './entities.ts';
import { endAttempt, landRun } from './move-run.ts';
import { toRun } from './rows.ts';

// `+` keeps the order from choosing the index: the held runs are few, all runs are many.
const EXPIRED =
  "select * from runs where state in ('running', 'cancelling') and (lease_until_ms <= ?1 or lease_holder <> ?2) order by +position";

/** A lease that was given by a clock ahead of this one lasts its own length from now on, no longer (BL-112). */
const CUT_FUTURE = `
update runs set lease_until_ms = ?1 + lease_ms
where state in ('running', 'cancelling') and lease_until_ms - lease_ms > ?1`;

/** S4: ends every attempt whose lease is over; without a sole holder `<>` compares with null, which is never true. */
export async function expireLeases(db: Database, nowMs: number, reclaimBudget: number, soleHolder?: string): Promise<readonly Run[]> {
  return db.write(async (tx) => {
    await tx.run(CUT_FUTURE, [nowMs]);
    const moved: Run[] = [];
    for (const run of (await tx.all<RunRecord>(EXPIRED, [nowMs, soleHolder ?? null])).map(toRun)) {
      await endAttempt(tx, run, 'lease_expired', nowMs);
      const after = await landRun(tx, run, { ...afterLeaseExpiry(run, reclaimBudget), reclaim: true }, nowMs);
      await appendEvent(db, tx, leaseExpired(after), nowMs);
      await tidyEnded(db, tx, after, nowMs);
      moved.push(after);
    }
    return moved;
  });
}
