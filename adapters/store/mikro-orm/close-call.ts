import { StoreError } from '../../../core/errors.ts';
import type { CallRow, CloseCall, StoreEffect } from '../../../core/ports/store.ts';
import type { AttemptRef, Run } from '../../../core/run/types.ts';
import { requireClosable } from '../call-transition.ts';
import { messagePosted } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { addCheckpoint } from './add-checkpoint.ts';
import { addDelivery } from './add-delivery.ts';
import { appendEvent } from './append-event.ts';
import { appendMessage } from './append-message.ts';
import type { Database, Tx } from './database.ts';
import type { CallRecord, PermitRecord } from './entities.ts';
import { requireHeld } from './fence.ts';
import { toCall } from './rows.ts';
import { spentColumns } from './spent.ts';

const FIND_PERMIT = 'select * from permits where id = ? and run = ?';

const CLOSE_PERMIT = "update permits set state = 'closed', closed_at_ms = ?, spent = ?, spent_at_ms = ? where id = ? and state = 'claimed'";

const CLOSE_CALL = `
update calls set state = ?, outcome = ?, closed_at_ms = ?
where id = ? and permit = ? and state = 'dispatched'
returning *`;

/** S6: permit, row, effect and event of one call's end in one transaction. */
export async function closeCall(db: Database, ref: AttemptRef, close: CloseCall): Promise<CallRow> {
  requireStorable([ref.run, close]);
  return db.write(async (tx) => closeHeld(db, tx, await requireHeld(tx, ref), close));
}

/** The same inside a transaction that has checked the fence. */
export async function closeHeld(db: Database, tx: Tx, run: Run, close: CloseCall): Promise<CallRow> {
  const permit = await tx.get<PermitRecord>(FIND_PERMIT, [close.permit, run.id]);
  if (permit === undefined) throw new StoreError('not_found', 'The run has no such permit');
  requireClosable({ open: permit.state === 'claimed', deadlineMs: permit.deadline_ms }, close);
  const row = await closeRow(tx, permit, close);
  await appendEvent(db, tx, close.event, close.nowMs);
  if (close.effect !== undefined) await apply(db, tx, run, close.effect, close.nowMs);
  return row;
}

async function closeRow(tx: Tx, held: PermitRecord, { permit, state, outcome, spent, nowMs }: CloseCall): Promise<CallRow> {
  const booked = spent === undefined ? [held.spent, held.spent_at_ms] : spentColumns(spent, nowMs);
  const closed = await tx.run(CLOSE_PERMIT, [nowMs, ...booked, permit]);
  const row = await tx.get<CallRecord>(CLOSE_CALL, [state, JSON.stringify(outcome), nowMs, held.call, permit]);
  if (closed !== 1 || row === undefined) throw new StoreError('conflict', 'The call is not open under this permit');
  return toCall(row);
}

async function apply(db: Database, tx: Tx, run: Run, effect: StoreEffect, nowMs: number): Promise<void> {
  if (effect.kind === 'checkpoint') return addCheckpoint(db, tx, run, effect, nowMs);
  const { thread, actor: user, id } = run;
  const message = await appendMessage(db, tx, { thread, author: 'agent', user, run: id, body: effect.body, steers: false, nowMs });
  await addDelivery(db, tx, run, message, nowMs);
  await appendEvent(db, tx, messagePosted(run, message), nowMs);
}
