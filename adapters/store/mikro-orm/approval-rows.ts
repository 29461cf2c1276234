import type { Approval } from '../../../core/approval/types.ts';
import type { Tx } from './database.ts';
import type { ApprovalRecord } from './entities.ts';

export const FIND_APPROVAL = 'select * from approvals where id = ?';

export const LIVE_OF_KEY = "select * from approvals where run = ? and step = ? and call_index = ? and state in ('pending', 'approved')";

const ADD = `
insert into approvals (id, position, tenant, run, call, step, call_index, actor, state, created_at_ms, expires_at_ms, asked)
values (?1, (select coalesce(max(position), 0) + 1 from approvals), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`;

const WRITE_STATE = `
update approvals
set state = ?, answered_at_ms = ?, answered_by = ?, answer_decision = ?, note = ?, use_by_ms = ?, ended_at_ms = ?
where id = ? and state in ('pending', 'approved')`;

type Columns =
  | 'id'
  | 'tenant'
  | 'run'
  | 'call'
  | 'key'
  | 'actor'
  | 'state'
  | 'createdAtMs'
  | 'expiresAtMs'
  | 'answeredAtMs'
  | 'answeredBy'
  | 'answerDecision'
  | 'note'
  | 'useByMs'
  | 'endedAtMs';

/** What is kept as one text: it is written once and looked for by none of it. */
type Asked = Omit<Approval, Columns>;

export const toApproval = (row: ApprovalRecord): Approval => ({
  ...(JSON.parse(row.asked) as Asked),
  id: row.id,
  tenant: row.tenant,
  run: row.run,
  call: row.call,
  key: { step: row.step, call: row.call_index },
  actor: row.actor,
  state: row.state as Approval['state'],
  createdAtMs: row.created_at_ms,
  expiresAtMs: row.expires_at_ms,
  answeredAtMs: row.answered_at_ms ?? undefined,
  answeredBy: row.answered_by ?? undefined,
  answerDecision: row.answer_decision ?? undefined,
  note: row.note ?? undefined,
  useByMs: row.use_by_ms ?? undefined,
  endedAtMs: row.ended_at_ms ?? undefined,
});

export async function addApproval(tx: Tx, approval: Approval): Promise<void> {
  const {
    thread,
    roles,
    origin,
    capability,
    effectClass,
    args,
    fingerprint,
    ceiling,
    digests,
    files,
    shown,
    reasons,
    decision,
    useWithinMs,
  } = approval;
  const asked: Asked = {
    ...{ thread, roles, origin, capability, effectClass, args, fingerprint, ceiling, digests },
    ...{ files, shown, reasons, decision, useWithinMs },
  };
  const { id, tenant, run, call, key, actor, state, createdAtMs, expiresAtMs } = approval;
  await tx.run(ADD, [id, tenant, run, call, key.step, key.call, actor, state, createdAtMs, expiresAtMs, JSON.stringify(asked)]);
}

/** Writes what may change of a live row; the transaction has read it. */
export async function writeState(tx: Tx, approval: Approval): Promise<void> {
  const { id, state, answeredAtMs, answeredBy, answerDecision, note, useByMs, endedAtMs } = approval;
  await tx.run(WRITE_STATE, [state, answeredAtMs, answeredBy, answerDecision, note, useByMs, endedAtMs, id]);
}
