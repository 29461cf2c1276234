import type { KernelEvent, NewEvent } from '../../../core/events.ts';
import type { Database, Tx } from './database.ts';
import type { EventRecord } from './entities.ts';
import { toEvent } from './rows.ts';

/** `cursor` is the row id: the highest one plus one, given inside the write transaction, so a rollback leaves no gap (S8). */
const INSERT = 'insert into events (at_ms, type, tenant, thread, run, data) values (?, ?, ?, ?, ?, ?) returning cursor';

/** Appends an event within the caller's transaction; waiters are told once that is durable. */
export async function appendEvent(db: Database, tx: Tx, event: NewEvent, nowMs: number): Promise<KernelEvent> {
  const { type, tenant, thread, run } = event;
  const data = JSON.stringify(event.data);
  const row = (await tx.get<Pick<EventRecord, 'cursor'>>(INSERT, [nowMs, type, tenant, thread, run, data])) as Pick<EventRecord, 'cursor'>;
  tx.afterCommit(() => db.changes.advance(row.cursor));
  return toEvent({ cursor: row.cursor, at_ms: nowMs, type, tenant, thread, run, data } as EventRecord);
}
