import { StoreError } from '../../../core/errors.ts';
import type { RunChange, RunCount, RunStore } from '../../../core/ports/store.ts';
import { ACTIVE_STATES, type ClaimedRun, isTerminal, type PlacementName, type Run, type RunState } from '../../../core/run/types.ts';
import { leaseExpired, runClaimed } from '../own-events.ts';
import { afterCancel, afterLeaseExpiry, isHeld, landing, requireMove, requireSettlement } from '../run-transition.ts';
import { requireStorable } from '../storable.ts';
import { tidyEnded, withoutAnsweredGate } from './approvals.ts';
import { append, copyOf, type Memory, type MemoryState, replace, requireHeld } from './state.ts';

const isActive = (run: Run): boolean => (ACTIVE_STATES as readonly RunState[]).includes(run.state);

export function memoryRuns(memory: Memory): RunStore {
  const { state } = memory;
  return {
    async claim({ holder, nowMs, leaseMs, deadlineMs, perUser }) {
      requireStorable(holder);
      const next = claimable(state, perUser);
      if (next === undefined) return undefined;
      const run: ClaimedRun = {
        ...next,
        state: 'running',
        fence: next.fence + 1,
        leaseHolder: holder,
        leaseUntilMs: nowMs + leaseMs,
        deadlineMs: next.deadlineMs ?? deadlineMs,
      };
      state.runs.set(run.id, run);
      state.leaseMs.set(run.id, leaseMs);
      const nothing = { placement: undefined, engine: undefined, sandbox: undefined, endedAtMs: undefined, outcome: undefined };
      state.attempts.push({ run: run.id, fence: run.fence, holder, startedAtMs: nowMs, ...nothing });
      append(memory, runClaimed(run), nowMs);
      return run;
    },
    async heartbeat(ref, nowMs, leaseMs) {
      const run = requireHeld(state, ref, 'lease_lost');
      state.runs.set(run.id, { ...run, leaseUntilMs: nowMs + leaseMs });
      state.leaseMs.set(run.id, leaseMs);
      return { cancelRequested: run.cancelRequested };
    },
    async seat(ref, { placement, engine, sandbox, event, nowMs }) {
      requireStorable([sandbox, event]);
      requireHeld(state, ref);
      for (const attempt of state.attempts) {
        if (attempt.run === ref.run && attempt.fence === ref.fence)
          replace(state.attempts, attempt, { ...attempt, placement, engine, sandbox });
      }
      append(memory, event, nowMs);
    },
    async settle(ref, change) {
      requireStorable(change);
      const run = requireHeld(state, ref);
      requireSettlement(run.state, change.to);
      endAttempt(state, run, change.outcome, change.nowMs);
      const after = land(state, run, change, change.nowMs);
      append(memory, change.event, change.nowMs);
      tidyEnded(memory, after, change.nowMs);
      return withoutAnsweredGate(memory, after, change.nowMs);
    },
    async move(id, change) {
      requireStorable([id, change]);
      const run = requireRun(state, id);
      requireMove(run.state, change.to, change.from);
      const after = land(state, run, change, change.nowMs);
      append(memory, change.event, change.nowMs);
      tidyEnded(memory, after, change.nowMs);
      return after;
    },
    async requestCancel(id, event, nowMs) {
      requireStorable([id, event]);
      const run = requireRun(state, id);
      const to = afterCancel(run.state);
      if (to === undefined) return run;
      const after = land(state, { ...run, cancelRequested: true }, { to }, nowMs);
      append(memory, event, nowMs);
      tidyEnded(memory, after, nowMs);
      return after;
    },
    async expire(nowMs, reclaimBudget, soleHolder) {
      const moved: Run[] = [];
      for (const run of [...state.runs.values()].filter(({ state: now }) => isHeld(now))) {
        const lease = state.leaseMs.get(run.id) ?? 0;
        const until = run.leaseUntilMs ?? 0;
        const orphan = soleHolder !== undefined && run.leaseHolder !== soleHolder;
        if (!orphan && until - lease > nowMs) state.runs.set(run.id, { ...run, leaseUntilMs: nowMs + lease });
        else if (orphan || until <= nowMs) {
          endAttempt(state, run, 'lease_expired', nowMs);
          const after = land(state, run, { ...afterLeaseExpiry(run, reclaimBudget), reclaim: true }, nowMs);
          append(memory, leaseExpired(after), nowMs);
          tidyEnded(memory, after, nowMs);
          moved.push(after);
        }
      }
      return moved;
    },
    async get(id) {
      return state.runs.get(id);
    },
    async list({ tenant, thread, actor, states, limit }) {
      return [...state.runs.values()]
        .filter((run) => tenant === undefined || run.tenant === tenant)
        .filter((run) => thread === undefined || run.thread === thread)
        .filter((run) => actor === undefined || run.actor === actor)
        .filter((run) => states === undefined || states.includes(run.state))
        .reverse()
        .slice(0, limit);
    },
    async parkedAt(kind) {
      return [...state.runs.values()].filter(({ state: now, gate }) => now === 'parked' && gate?.kind === kind);
    },
    async unfinished() {
      const counts = new Map<string, RunCount>();
      for (const { state: now, gate } of state.runs.values()) {
        if (isTerminal(now)) continue;
        const kind = now === 'parked' ? gate?.kind : undefined;
        const known = counts.get(`${now} ${kind}`);
        counts.set(`${now} ${kind}`, { state: now, gate: kind, count: (known?.count ?? 0) + 1 });
      }
      return [...counts.values()];
    },
    async attempts(run) {
      return state.attempts.filter((attempt) => attempt.run === run);
    },
    async lastSeats(runs) {
      const seated = state.attempts.filter(({ run, placement }) => runs.includes(run) && placement !== undefined);
      return new Map(seated.map(({ run, placement }) => [run, placement as PlacementName]));
    },
  };
}

/** S1: the oldest queued run that is first in its thread, in a thread without an active run, of an actor who has room. */
function claimable(state: MemoryState, perUser: number): Run | undefined {
  const runs = [...state.runs.values()];
  const blocked = new Set(runs.filter(isActive).map(({ thread }) => thread));
  for (const run of runs) {
    if (run.state !== 'queued' || blocked.has(run.thread)) continue;
    const mine = runs.filter((other) => isHeld(other.state) && other.tenant === run.tenant && other.actor === run.actor);
    if (mine.length < perUser) return run;
    blocked.add(run.thread);
  }
  return undefined;
}

function requireRun(state: MemoryState, id: string): Run {
  const run = state.runs.get(id);
  if (run === undefined) throw new StoreError('not_found', `There is no run ${id}`);
  return run;
}

export function land(
  state: MemoryState,
  run: Run,
  change: Pick<RunChange, 'to' | 'gate' | 'failure'> & { readonly reclaim?: boolean },
  nowMs: number,
): Run {
  const parkedAtMs = state.attempts.findLast((attempt) => attempt.run === run.id)?.endedAtMs;
  const next = landing(run, change, nowMs, parkedAtMs);
  const lease = next.state === 'cancelling' ? {} : { leaseHolder: undefined, leaseUntilMs: undefined };
  const after: Run = { ...run, ...next, gate: copyOf(next.gate), reclaims: run.reclaims + (change.reclaim === true ? 1 : 0), ...lease };
  state.runs.set(run.id, after);
  return after;
}

function endAttempt(state: MemoryState, run: Run, outcome: string, nowMs: number): void {
  for (const attempt of state.attempts) {
    if (attempt.run === run.id && attempt.fence === run.fence) replace(state.attempts, attempt, { ...attempt, outcome, endedAtMs: nowMs });
  }
}
