import { StoreError } from '../../../core/errors.ts';
import type { ApprovalStore } from '../../../core/ports/approval-store.ts';
import { answered, ended, requireAnswerable } from '../approval-transition.ts';
import { approvalAnswered, approvalEnded } from '../own-events.ts';
import { isStorable, requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import { refuseCall, wakeFor } from './approval-effects.ts';
import { FIND_APPROVAL, LIVE_OF_KEY, toApproval, writeState } from './approval-rows.ts';
import type { Database } from './database.ts';
import { ApprovalEntity, type ApprovalRecord } from './entities.ts';

// Both conditions on `state`: the first one is the partial index.
const OVER = `
select * from approvals
where state in ('pending', 'approved')
  and ((state = 'pending' and expires_at_ms < ?1) or (state = 'approved' and use_by_ms < ?1))
order by +position`;

const FIND_FILE = 'select body from approval_files where sha256 = ?';

export function approvalStore(db: Database): ApprovalStore {
  return {
    async get(id) {
      if (!isStorable(id)) return undefined;
      const row = await db.get<ApprovalRecord>(FIND_APPROVAL, [id]);
      return row === undefined ? undefined : toApproval(row);
    },
    async live(run, { step, call }) {
      if (!isStorable(run)) return undefined;
      const row = await db.get<ApprovalRecord>(LIVE_OF_KEY, [run, step, call]);
      return row === undefined ? undefined : toApproval(row);
    },
    async list({ tenant, run, actor, states, limit }) {
      const where = {
        ...(tenant === undefined ? {} : { tenant }),
        ...(run === undefined ? {} : { run }),
        ...(actor === undefined ? {} : { actor }),
        ...(states === undefined ? {} : { state: { $in: [...states] } }),
      };
      return (await db.find(ApprovalEntity, where, { orderBy: { position: 'desc' }, limit })).map(toApproval);
    },
    async answer(answer) {
      requireStorable(answer);
      return db.write(async (tx) => {
        const row = await tx.get<ApprovalRecord>(FIND_APPROVAL, [answer.approval]);
        if (row === undefined) throw new StoreError('not_found', `There is no approval ${answer.approval}`);
        const approval = toApproval(row);
        requireAnswerable(approval, answer.nowMs);
        const after = answered(approval, answer);
        await writeState(tx, after);
        await appendEvent(db, tx, approvalAnswered(after), answer.nowMs);
        if (after.state === 'denied') await refuseCall(db, tx, after, answer.nowMs);
        await wakeFor(db, tx, after, answer.nowMs);
        return after;
      });
    },
    async expire(nowMs) {
      return db.write(async (tx) => {
        const over = (await tx.all<ApprovalRecord>(OVER, [nowMs])).map(toApproval);
        for (const approval of over.map((one) => ended(one, 'expired', nowMs))) {
          await writeState(tx, approval);
          await appendEvent(db, tx, approvalEnded(approval), nowMs);
          await refuseCall(db, tx, approval, nowMs);
          await wakeFor(db, tx, approval, nowMs);
        }
        return over.map((one) => ended(one, 'expired', nowMs));
      });
    },
    async file(sha256) {
      if (!isStorable(sha256)) return undefined;
      return (await db.get<{ body: string }>(FIND_FILE, [sha256]))?.body;
    },
  };
}
