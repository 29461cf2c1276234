import type { CallRow, OpenCall, OpenResult } from '../../../core/ports/store.ts';
import type { AttemptRef } from '../../../core/run/types.ts';
import { answerOf, openedState, requireOpenable } from '../call-transition.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import { askFor, consume, usableFor, withdrawFor } from './approval-effects.ts';
import { closeHeld } from './close-call.ts';
import type { Database, Tx } from './database.ts';
import { addDecision } from './decisions.ts';
import type { CallRecord } from './entities.ts';
import { requireHeld } from './fence.ts';
import { toCall } from './rows.ts';
import { spentColumns } from './spent.ts';

export const FIND_CALL = 'select * from calls where run = ? and step = ? and call = ?';

const ADD_PERMIT = `
insert into permits (id, run, fence, call, state, deadline_ms, claimed_at_ms, spent, spent_at_ms)
values (?, ?, ?, ?, 'claimed', ?, ?, ?, ?)`;

/** A new row, or a `prepared` one handed over again: its id and its key stay. */
const PUT_CALL = `
insert into calls (run, step, call, id, args_digest, capability, fence, effect_class, state, decision, permit, opened_at_ms, closed_at_ms, summary, outcome)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, step, call) do update set
  fence = excluded.fence, effect_class = excluded.effect_class, state = excluded.state, decision = excluded.decision,
  permit = excluded.permit, opened_at_ms = excluded.opened_at_ms, closed_at_ms = excluded.closed_at_ms,
  summary = excluded.summary, outcome = excluded.outcome
  where calls.state = 'prepared'
returning *`;

/** S5: decision, ledger row, permit or ask, and event of one call in one transaction, or the answer that the key's row gives already. */
export async function openCall(db: Database, ref: AttemptRef, call: OpenCall): Promise<OpenResult> {
  requireStorable([ref.run, call]);
  requireOpenable(call);
  return db.write(async (tx) => {
    const run = await requireHeld(tx, ref);
    const found = await tx.get<CallRecord>(FIND_CALL, [ref.run, call.key.step, call.key.call]);
    const answer = found === undefined ? undefined : answerOf(toCall(found), ref, call);
    if (answer !== undefined) return answer;
    const used = call.approval === undefined ? undefined : await usableFor(tx, found?.id, call.approval, call.nowMs);
    const row = await putCall(tx, found?.id ?? db.newId('call', call.nowMs), ref, call);
    const { decision, nowMs } = call;
    await addDecision(tx, { ...decision, run: ref.run, kind: 'call', capability: call.capability, atMs: nowMs });
    if (call.permit !== undefined) {
      const { id, deadlineMs } = call.permit;
      await tx.run(ADD_PERMIT, [id, ref.run, ref.fence, row.id, deadlineMs, nowMs, ...spentColumns(call.reserved, deadlineMs)]);
    }
    if (call.ask !== undefined) return { kind: 'parked', row, approval: await askFor(db, tx, run, row, { ...call, ask: call.ask }) };
    await appendEvent(db, tx, call.event, nowMs);
    if (call.gate !== undefined) return { kind: 'waiting', row, gate: call.gate };
    if (used !== undefined) await consume(db, tx, used, nowMs);
    else if (found !== undefined) await withdrawFor(db, tx, row.id, nowMs);
    if (call.closing !== undefined && call.permit !== undefined) {
      return { kind: 'recorded', row: await closeHeld(db, tx, run, { permit: call.permit.id, state: 'done', nowMs, ...call.closing }) };
    }
    return { kind: call.permit === undefined ? 'recorded' : 'opened', row };
  });
}

async function putCall(tx: Tx, id: string, ref: AttemptRef, call: OpenCall): Promise<CallRow> {
  const { key, outcome, permit, nowMs } = call;
  const row = await tx.get<CallRecord>(PUT_CALL, [
    ref.run,
    key.step,
    key.call,
    id,
    call.argsDigest,
    call.capability,
    ref.fence,
    call.effectClass,
    openedState(call),
    call.decision.id,
    permit?.id,
    nowMs,
    openedState(call) === 'done' ? nowMs : undefined,
    call.summary,
    outcome === undefined ? undefined : JSON.stringify(outcome),
  ]);
  return toCall(row as CallRecord);
}
