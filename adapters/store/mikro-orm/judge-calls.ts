import type { CallRow } from '../../../core/ports/store.ts';
import type { AttemptRef } from '../../../core/run/types.ts';
import { callUnknown } from '../own-events.ts';
import { appendEvent } from './append-event.ts';
import type { Database } from './database.ts';
import type { CallRecord } from './entities.ts';
import { requireHeld } from './fence.ts';
import { toCall } from './rows.ts';

/** An open permit belongs to a dispatched row: found through it, without reading every permit there is. */
const VOID_PERMITS = `
update permits set state = 'void', closed_at_ms = ?
where state = 'claimed' and id in (select permit from calls where run = ? and state = 'dispatched')`;

const TO_UNKNOWN = `
update calls set state = 'unknown', closed_at_ms = ?
where run = ? and state = 'dispatched' and effect_class = 'once'
returning *`;

const TO_PREPARED = "update calls set state = 'prepared', permit = null where run = ? and state = 'dispatched'";

/** S7: what an earlier attempt left `dispatched` may have happened (`once`) or may run again; its permits are void. */
export async function judgeCalls(db: Database, ref: AttemptRef, nowMs: number): Promise<readonly CallRow[]> {
  return db.write(async (tx) => {
    const run = await requireHeld(tx, ref);
    await tx.run(VOID_PERMITS, [nowMs, ref.run]);
    const unknown = (await tx.all<CallRecord>(TO_UNKNOWN, [nowMs, ref.run])).map(toCall);
    await tx.run(TO_PREPARED, [ref.run]);
    // `returning` promises no order.
    unknown.sort((a, b) => a.key.step - b.key.step || a.key.call - b.key.call);
    for (const row of unknown) await appendEvent(db, tx, callUnknown(run, row), nowMs);
    return unknown;
  });
}
