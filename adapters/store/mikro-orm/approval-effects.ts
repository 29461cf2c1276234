import type { Approval, NewApproval } from '../../../core/approval/types.ts';
import type { NewEvent } from '../../../core/events.ts';
import type { CallRow, OpenCall } from '../../../core/ports/store.ts';
import { isTerminal, type Run } from '../../../core/run/types.ts';
import { askText, ended, newApproval, refusalOf, requireUsable, standsFor, waitsFor } from '../approval-transition.ts';
import { approvalEnded, callNotApproved, runWoken } from '../own-events.ts';
import { addAsk } from './add-delivery.ts';
import { appendEvent } from './append-event.ts';
import { addApproval, FIND_APPROVAL, LIVE_OF_KEY, toApproval, writeState } from './approval-rows.ts';
import type { Database, Tx } from './database.ts';
import type { ApprovalRecord, CallRecord } from './entities.ts';
import { landRun, requireRun } from './move-run.ts';
import { toCall } from './rows.ts';

/** What asks and answers do to the rows beside them, within the transaction of whoever writes those. */

const LIVE_OF_CALL = "select * from approvals where call = ? and state in ('pending', 'approved')";

const LIVE_OF_RUN = "select * from approvals where run = ? and state in ('pending', 'approved') order by +position";

const KEEP_FILE = 'insert into approval_files (sha256, created_at_ms, body) values (?, ?, ?) on conflict (sha256) do nothing';

const USE_FILE = 'insert into approval_uses (sha256, approval) values (?, ?) on conflict do nothing';

const CLEAR_CHECKPOINTS = 'delete from checkpoints where run = ?';

const REFUSE_CALL = "update calls set state = 'done', outcome = ?, closed_at_ms = ? where id = ? and state = 'prepared' returning *";

/** S12. The ask that the call now waits for: the live one when it is the same, else a new one with its delivery. */
export async function askFor(
  db: Database,
  tx: Tx,
  run: Run,
  row: CallRow,
  { ask, event, nowMs }: { readonly ask: NewApproval; readonly event: NewEvent; readonly nowMs: number },
): Promise<Approval> {
  const found = await tx.get<ApprovalRecord>(LIVE_OF_KEY, [run.id, row.key.step, row.key.call]);
  const live = found === undefined ? undefined : toApproval(found);
  if (live !== undefined && standsFor(live, ask, nowMs)) return live;
  await withdrawFor(db, tx, row.id, nowMs);
  const approval = newApproval(ask, run, row, nowMs);
  await addApproval(tx, approval);
  for (const { sha256, body } of ask.kept) {
    await tx.run(KEEP_FILE, [sha256, nowMs, body]);
    await tx.run(USE_FILE, [sha256, approval.id]);
  }
  await appendEvent(db, tx, event, nowMs);
  await addAsk(db, tx, run, { approval: approval.id, body: askText(approval) }, nowMs);
  return approval;
}

/** S14. The approval that lets the call of this row happen now. @throws StoreError `approval_unusable` */
export async function usableFor(
  tx: Tx,
  call: string | undefined,
  wanted: NonNullable<OpenCall['approval']>,
  nowMs: number,
): Promise<Approval> {
  const row = await tx.get<ApprovalRecord>(FIND_APPROVAL, [wanted.id]);
  return requireUsable(row === undefined ? undefined : toApproval(row), call, wanted, nowMs);
}

/** S14. */
export const consume = (db: Database, tx: Tx, approval: Approval, nowMs: number): Promise<void> => end(db, tx, approval, 'consumed', nowMs);

/** S17. */
export async function withdrawFor(db: Database, tx: Tx, call: string, nowMs: number): Promise<void> {
  for (const row of await tx.all<ApprovalRecord>(LIVE_OF_CALL, [call])) await end(db, tx, toApproval(row), 'withdrawn', nowMs);
}

/** S10 and S17, for every write that may have ended a run: nobody goes on from its checkpoints, nobody waits for its asks. */
export async function tidyEnded(db: Database, tx: Tx, run: Run, nowMs: number): Promise<void> {
  if (!isTerminal(run.state)) return;
  await tx.run(CLEAR_CHECKPOINTS, [run.id]);
  for (const row of await tx.all<ApprovalRecord>(LIVE_OF_RUN, [run.id])) await end(db, tx, toApproval(row), 'withdrawn', nowMs);
}

/** S16. A run that parks on an ask which has its answer already goes back to the queue. */
export async function withoutAnsweredGate(db: Database, tx: Tx, run: Run, nowMs: number): Promise<Run> {
  if (run.state !== 'parked' || run.gate?.kind !== 'approval') return run;
  const row = await tx.get<ApprovalRecord>(FIND_APPROVAL, [run.gate.ref]);
  if (row === undefined || row.run !== run.id || row.state === 'pending') return run;
  return wake(db, tx, run, toApproval(row), nowMs);
}

/** S13, S15: the row of a call that was not approved. */
export async function refuseCall(db: Database, tx: Tx, approval: Approval, nowMs: number): Promise<void> {
  const row = await tx.get<CallRecord>(REFUSE_CALL, [JSON.stringify(refusalOf(approval)), nowMs, approval.call]);
  if (row !== undefined) await appendEvent(db, tx, callNotApproved(approval, toCall(row)), nowMs);
}

/** S16. */
export async function wakeFor(db: Database, tx: Tx, approval: Approval, nowMs: number): Promise<void> {
  const run = await requireRun(tx, approval.run);
  if (waitsFor(run, approval.id)) await wake(db, tx, run, approval, nowMs);
}

async function wake(db: Database, tx: Tx, run: Run, approval: Approval, nowMs: number): Promise<Run> {
  const woken = await landRun(tx, run, { to: 'queued' }, nowMs);
  await appendEvent(db, tx, runWoken(woken, approval), nowMs);
  return woken;
}

async function end(db: Database, tx: Tx, approval: Approval, state: 'consumed' | 'withdrawn', nowMs: number): Promise<void> {
  const after = ended(approval, state, nowMs);
  await writeState(tx, after);
  await appendEvent(db, tx, approvalEnded(after), nowMs);
}
