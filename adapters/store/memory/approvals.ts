import { type Approval, LIVE_STATES, type NewApproval } from '../../../core/approval/types.ts';
import { StoreError } from '../../../core/errors.ts';
import type { NewEvent } from '../../../core/events.ts';
import type { ApprovalStore } from '../../../core/ports/approval-store.ts';
import type { CallRow, OpenCall } from '../../../core/ports/store.ts';
import { isTerminal, type Run } from '../../../core/run/types.ts';
import {
  answered,
  askText,
  ended,
  isOver,
  newApproval,
  refusalOf,
  requireAnswerable,
  requireUsable,
  standsFor,
  waitsFor,
} from '../approval-transition.ts';
import { approvalAnswered, approvalEnded, callNotApproved, runWoken } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { land } from './runs.ts';
import { append, copyOf, type Memory, type MemoryState, replace } from './state.ts';

const isLive = ({ state }: Approval): boolean => LIVE_STATES.includes(state);
const liveOf = ({ approvals }: MemoryState, call: string): Approval | undefined =>
  approvals.find((one) => one.call === call && isLive(one));

export function memoryApprovals(memory: Memory): ApprovalStore {
  const { state } = memory;
  return {
    async get(id) {
      return state.approvals.find((one) => one.id === id);
    },
    async live(run, { step, call }) {
      return state.approvals.find((one) => one.run === run && one.key.step === step && one.key.call === call && isLive(one));
    },
    async list({ tenant, run, actor, states, limit }) {
      return state.approvals
        .filter((one) => tenant === undefined || one.tenant === tenant)
        .filter((one) => run === undefined || one.run === run)
        .filter((one) => actor === undefined || one.actor === actor)
        .filter((one) => states === undefined || states.includes(one.state))
        .reverse()
        .slice(0, limit);
    },
    async answer(answer) {
      requireStorable(answer);
      const approval = state.approvals.find((one) => one.id === answer.approval);
      if (approval === undefined) throw new StoreError('not_found', `There is no approval ${answer.approval}`);
      requireAnswerable(approval, answer.nowMs);
      const after = replace(state.approvals, approval, answered(approval, answer));
      append(memory, approvalAnswered(after), answer.nowMs);
      if (after.state === 'denied') refuse(memory, after, answer.nowMs);
      wake(memory, after, answer.nowMs);
      return after;
    },
    async expire(nowMs) {
      return state.approvals
        .filter((one) => isOver(one, nowMs))
        .map((one) => {
          const after = replace(state.approvals, one, ended(one, 'expired', nowMs));
          append(memory, approvalEnded(after), nowMs);
          refuse(memory, after, nowMs);
          wake(memory, after, nowMs);
          return after;
        });
    },
    async file(sha256) {
      return state.approvalFiles.get(sha256);
    },
  };
}

/** S12. The ask that the call now waits for: the live one when it is the same, else a new one with its delivery. */
export function ask(memory: Memory, run: Run, row: CallRow, wanted: NewApproval, event: NewEvent, nowMs: number): Approval {
  const { state } = memory;
  const live = liveOf(state, row.id);
  if (live !== undefined && standsFor(live, wanted, nowMs)) return live;
  withdrawOthers(memory, row.id, nowMs);
  const approval: Approval = { ...newApproval(wanted, run, row, nowMs), ...copyOf(askedOf(wanted)) };
  state.approvals.push(approval);
  for (const { sha256, body } of wanted.kept) state.approvalFiles.set(sha256, body);
  append(memory, event, nowMs);
  state.deliveries.push({
    ...{ id: memory.newId('delivery', nowMs), tenant: run.tenant, thread: run.thread, run: run.id, user: run.actor },
    ...{ body: askText(approval), kind: 'approval', approval: approval.id, message: '', state: 'prepared' },
    ...{ sender: undefined, attempts: 0, createdAtMs: nowMs, updatedAtMs: nowMs },
  });
  return approval;
}

const askedOf = ({ kept: _, ...asked }: NewApproval) => asked;

/** S14. @throws StoreError `approval_unusable` */
export function requireConsumable(
  memory: Memory,
  call: string | undefined,
  wanted: NonNullable<OpenCall['approval']>,
  nowMs: number,
): void {
  requireUsable(
    memory.state.approvals.find((one) => one.id === wanted.id),
    call,
    wanted,
    nowMs,
  );
}

export function consume(memory: Memory, id: string, nowMs: number): void {
  endAs(memory, (one) => one.id === id, 'consumed', nowMs);
}

/** S17. */
export function withdrawOthers(memory: Memory, call: string, nowMs: number): void {
  endAs(memory, (one) => one.call === call, 'withdrawn', nowMs);
}

/** S10 and S17: nobody goes on from the checkpoints of an ended run, nobody waits for its asks. */
export function tidyEnded(memory: Memory, run: Run, nowMs: number): void {
  if (!isTerminal(run.state)) return;
  memory.state.checkpoints = memory.state.checkpoints.filter((one) => one.run !== run.id);
  endAs(memory, (one) => one.run === run.id, 'withdrawn', nowMs);
}

/** S16. A run that parks on an ask which has its answer already goes back to the queue. */
export function withoutAnsweredGate(memory: Memory, run: Run, nowMs: number): Run {
  const approval = memory.state.approvals.find((one) => waitsFor(run, one.id));
  if (approval === undefined || approval.state === 'pending') return run;
  return wake(memory, approval, nowMs) ?? run;
}

function endAs(memory: Memory, which: (approval: Approval) => boolean, state: 'consumed' | 'withdrawn', nowMs: number): void {
  for (const one of memory.state.approvals.filter((approval) => isLive(approval) && which(approval)))
    append(memory, approvalEnded(replace(memory.state.approvals, one, ended(one, state, nowMs))), nowMs);
}

function refuse(memory: Memory, approval: Approval, nowMs: number): void {
  const { calls } = memory.state;
  const row = calls.find((one) => one.id === approval.call && one.state === 'prepared');
  if (row === undefined) return;
  const closed = replace(calls, row, { ...row, state: 'done', outcome: refusalOf(approval), closedAtMs: nowMs });
  append(memory, callNotApproved(approval, closed), nowMs);
}

function wake(memory: Memory, approval: Approval, nowMs: number): Run | undefined {
  const run = memory.state.runs.get(approval.run);
  if (run === undefined || !waitsFor(run, approval.id)) return undefined;
  const woken = land(memory.state, run, { to: 'queued' }, nowMs);
  append(memory, runWoken(woken, approval), nowMs);
  return woken;
}
