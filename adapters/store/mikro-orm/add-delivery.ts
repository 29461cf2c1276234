import type { Message, Run } from '../../../core/run/types.ts';
import type { Database, Tx } from './database.ts';

const INSERT = `
insert into deliveries (id, position, tenant, thread, run, user_name, message, state, attempts, created_at_ms, updated_at_ms, body, kind, approval)
values (?1, (select coalesce(max(position), 0) + 1 from deliveries), ?2, ?3, ?4, ?5, ?6, 'prepared', 0, ?7, ?7, ?8, ?9, ?10)`;

/** Puts a reply on its way, in the transaction that appends it to the thread (S11). */
export async function addDelivery(db: Database, tx: Tx, run: Run, message: Message, nowMs: number): Promise<void> {
  const id = db.newId('delivery', nowMs);
  await tx.run(INSERT, [id, run.tenant, run.thread, run.id, run.actor, message.id, nowMs, message.body, 'reply', null]);
}

/** Puts an ask on its way, in the transaction that makes it (S12). */
export async function addAsk(
  db: Database,
  tx: Tx,
  run: Run,
  ask: { readonly approval: string; readonly body: string },
  nowMs: number,
): Promise<void> {
  const id = db.newId('delivery', nowMs);
  await tx.run(INSERT, [id, run.tenant, run.thread, run.id, run.actor, '', nowMs, ask.body, 'approval', ask.approval]);
}
