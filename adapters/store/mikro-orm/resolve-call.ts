import { StoreError } from '../../../core/errors.ts';
import type { NewEvent } from '../../../core/events.ts';
import type { CallRow } from '../../../core/ports/store.ts';
import { resolvedOutcome } from '../call-transition.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import type { Database } from './database.ts';
import type { CallRecord } from './entities.ts';
import { toCall } from './rows.ts';

const RESOLVE = "update calls set state = ?, outcome = ?, permit = ?, closed_at_ms = ? where id = ? and state = 'unknown' returning *";

/** A person ends an `unknown` row, one way or the other. */
export async function resolveCall(db: Database, id: string, as: 'done' | 'not-done', event: NewEvent, nowMs: number): Promise<CallRow> {
  requireStorable([id, event]);
  return db.write(async (tx) => {
    const found = await tx.get<CallRecord>('select * from calls where id = ?', [id]);
    if (found === undefined) throw new StoreError('not_found', `There is no call ${id}`);
    const { state, outcome, permit } = toCall(found);
    if (state !== 'unknown') throw new StoreError('conflict', `The call is ${state}, not unknown`);
    const values =
      as === 'done' ? ['done', JSON.stringify(resolvedOutcome(outcome)), permit, nowMs] : ['prepared', undefined, undefined, undefined];
    const row = (await tx.get<CallRecord>(RESOLVE, [...values, id])) as CallRecord;
    await appendEvent(db, tx, event, nowMs);
    return toCall(row);
  });
}
