import type { CallKey } from '../../../core/capability/types.ts';
import { StoreError } from '../../../core/errors.ts';
import type { CallRow, CallStore, CloseCall, StoreEffect } from '../../../core/ports/store.ts';
import type { AttemptRef, Run } from '../../../core/run/types.ts';
import { answerOf, judgedState, openedState, requireClosable, requireOpenable, resolvedOutcome } from '../call-transition.ts';
import { checkpointDigest, KEPT_CHECKPOINTS } from '../checkpoint-seal.ts';
import { callUnknown, messagePosted } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { ask, consume, requireConsumable, withdrawOthers } from './approvals.ts';
import { append, copyOf, type Memory, replace, requireHeld } from './state.ts';
import { appendMessage } from './threads.ts';

const byKey = (a: CallRow, b: CallRow): number => a.key.step - b.key.step || a.key.call - b.key.call;

export function memoryCalls(memory: Memory): CallStore {
  const { calls, decisions, permits } = memory.state;
  const find = (run: string, key: CallKey) =>
    calls.find((row) => row.run === run && row.key.step === key.step && row.key.call === key.call);
  const closeHeld = (ref: AttemptRef, close: CloseCall): CallRow => {
    requireStorable([ref.run, close]);
    const run = requireHeld(memory.state, ref);
    const permit = permits.get(close.permit);
    if (permit === undefined || permit.run !== ref.run) throw new StoreError('not_found', 'The run has no such permit');
    requireClosable(permit, close);
    const row = calls.find((one) => one.permit === close.permit && one.state === 'dispatched');
    if (row === undefined) throw new StoreError('conflict', 'The call is not open under this permit');
    permits.set(close.permit, { ...permit, open: false, ...(close.spent && { spent: close.spent, spentAtMs: close.nowMs }) });
    const closed = replace(calls, row, { ...row, state: close.state, outcome: copyOf(close.outcome), closedAtMs: close.nowMs });
    append(memory, close.event, close.nowMs);
    if (close.effect !== undefined) apply(memory, run, close.effect, close.nowMs);
    return closed;
  };
  return {
    async open(ref, call) {
      requireStorable([ref.run, call]);
      requireOpenable(call);
      const run = requireHeld(memory.state, ref);
      const found = find(ref.run, call.key);
      const answer = found === undefined ? undefined : answerOf(found, ref, call);
      if (answer !== undefined) return answer;
      const { key, capability, effectClass, argsDigest, summary, decision, permit, outcome, nowMs } = call;
      if (decisions.some(({ id }) => id === decision.id)) throw new StoreError('conflict', 'The decision exists');
      if (permit !== undefined && permits.has(permit.id)) throw new StoreError('conflict', 'The permit exists');
      if (call.approval !== undefined) requireConsumable(memory, found?.id, call.approval, nowMs);
      const row: CallRow = {
        id: found?.id ?? memory.newId('call', nowMs),
        run: ref.run,
        fence: ref.fence,
        key: { step: key.step, call: key.call },
        capability,
        effectClass,
        argsDigest,
        state: openedState(call),
        outcome: copyOf(outcome),
        summary,
        decision: decision.id,
        permit: permit?.id,
        openedAtMs: nowMs,
        closedAtMs: openedState(call) === 'done' ? nowMs : undefined,
      };
      if (found === undefined) calls.push(row);
      else replace(calls, found, row);
      decisions.push(copyOf({ ...decision, run: ref.run, kind: 'call', capability, atMs: nowMs }));
      if (permit !== undefined) {
        const { id, deadlineMs } = permit;
        permits.set(id, { run: ref.run, open: true, deadlineMs, spent: call.reserved ?? {}, spentAtMs: deadlineMs });
      }
      if (call.ask !== undefined) return { kind: 'parked', row, approval: ask(memory, run, row, call.ask, call.event, nowMs) };
      append(memory, call.event, nowMs);
      if (call.gate !== undefined) return { kind: 'waiting', row, gate: call.gate };
      if (call.approval !== undefined) consume(memory, call.approval.id, nowMs);
      else if (found !== undefined) withdrawOthers(memory, row.id, nowMs);
      if (call.closing !== undefined && permit !== undefined) {
        return { kind: 'recorded', row: closeHeld(ref, { permit: permit.id, state: 'done', nowMs, ...call.closing }) };
      }
      return { kind: permit === undefined ? 'recorded' : 'opened', row };
    },
    async find(run, key) {
      return find(run, key);
    },
    async close(ref, close) {
      return closeHeld(ref, close);
    },
    async judge(ref, nowMs) {
      const run = requireHeld(memory.state, ref);
      for (const [id, permit] of permits) if (permit.run === ref.run) permits.set(id, { ...permit, open: false });
      const unknown: CallRow[] = [];
      for (const row of calls.filter((one) => one.run === ref.run && one.state === 'dispatched')) {
        if (judgedState(row) === 'unknown') unknown.push(replace(calls, row, { ...row, state: 'unknown', closedAtMs: nowMs }));
        else replace(calls, row, { ...row, state: 'prepared', permit: undefined });
      }
      unknown.sort(byKey);
      for (const row of unknown) append(memory, callUnknown(run, row), nowMs);
      return unknown;
    },
    async resolve(id, as, event, nowMs) {
      requireStorable([id, event]);
      const row = calls.find((one) => one.id === id);
      if (row === undefined) throw new StoreError('not_found', `There is no call ${id}`);
      if (row.state !== 'unknown') throw new StoreError('conflict', `The call is ${row.state}, not unknown`);
      const ended: Partial<CallRow> =
        as === 'done'
          ? { state: 'done', outcome: resolvedOutcome(row.outcome), closedAtMs: nowMs }
          : { state: 'prepared', outcome: undefined, permit: undefined, closedAtMs: undefined };
      append(memory, event, nowMs);
      return replace(calls, row, { ...row, ...ended });
    },
    async spent(sinceMs) {
      return [...permits.values()]
        .filter(({ spentAtMs }) => spentAtMs >= sinceMs)
        .flatMap(({ run: id, spent }) => {
          const run = memory.state.runs.get(id);
          return run === undefined ? [] : [{ tenant: run.tenant, user: run.actor, thread: run.thread, amounts: spent }];
        });
    },
    async list(run) {
      return calls.filter((row) => row.run === run).sort(byKey);
    },
    async decisions(run) {
      return decisions.filter((decision) => decision.run === run);
    },
  };
}

function apply(memory: Memory, run: Run, effect: StoreEffect, nowMs: number): void {
  const { state } = memory;
  const { id, tenant, thread, actor: user, fence } = run;
  if (effect.kind === 'message') {
    const message = appendMessage(memory, { thread, author: 'agent', user, run: id, body: effect.body, steers: false }, nowMs);
    const delivery = {
      id: memory.newId('delivery', nowMs),
      tenant,
      thread,
      run: id,
      user,
      body: effect.body,
      message: message.id,
      kind: 'reply',
    } as const;
    state.deliveries.push({ ...delivery, state: 'prepared', sender: undefined, attempts: 0, createdAtMs: nowMs, updatedAtMs: nowMs });
    append(memory, messagePosted(run, message), nowMs);
    return;
  }
  const { schema, version, body } = effect;
  const rows = state.calls.filter((row) => row.run === id);
  state.checkpoints.push({
    id: memory.newId('checkpoint', nowMs),
    run: id,
    fence,
    schema,
    version,
    body,
    ledgerPosition: rows.filter((row) => row.state === 'done').length,
    safe: !rows.some((row) => row.state === 'dispatched' && row.effectClass === 'once'),
    createdAtMs: nowMs,
    sha256: checkpointDigest({ run: id, schema, version, body }),
  });
  const kept = state.checkpoints.filter((one) => one.run === id && one.safe).slice(-KEPT_CHECKPOINTS);
  const oldest = kept.length < KEPT_CHECKPOINTS ? 0 : state.checkpoints.indexOf(kept[0] as (typeof kept)[number]);
  state.checkpoints = state.checkpoints.filter((one, at) => one.run !== id || at >= oldest);
}
