import { type Approval, LIVE_STATES } from '../../core/approval/types.ts';
import type { KernelEvent } from '../../core/events.ts';
import type { CallRow, DeliveryRow } from '../../core/ports/store.ts';
import type { Attempt, Run } from '../../core/run/types.ts';
import { ACTIVE_STATES, isTerminal, type RunState } from '../../core/run/types.ts';

/** What `visible` gives; the invariants read no more than a user of the store could. */
interface Visible {
  readonly runs: readonly { readonly run: Run; readonly attempts: readonly Attempt[]; readonly calls: readonly CallRow[] }[];
  readonly deliveries: readonly DeliveryRow[];
  readonly approvals: readonly Approval[];
  readonly events: readonly KernelEvent[];
}

const isActive = (state: RunState): boolean => (ACTIVE_STATES as readonly RunState[]).includes(state);

/** Sentences about what must hold in every state, and between a state and the next one; empty when all does. */
export function violations(beforeUnknown: unknown, afterUnknown: unknown): readonly string[] {
  const before = beforeUnknown as Visible;
  const after = afterUnknown as Visible;
  const found: string[] = [];
  const holds = (ok: boolean, sentence: string) => {
    if (!ok) found.push(sentence);
  };

  const active = after.runs.filter(({ run }) => isActive(run.state)).map(({ run }) => run.thread);
  holds(new Set(active).size === active.length, 'a thread has two active runs');
  const newest = before.events.at(-1)?.cursor ?? 0;
  holds(
    after.events.filter(({ cursor }) => cursor > newest).every(({ cursor }, at) => cursor === newest + at + 1),
    'cursors have a gap',
  );
  holds(after.events.length >= before.events.length, 'events were lost');

  for (const { run, attempts, calls } of after.runs) {
    holds(attempts.length === run.fence && attempts.every(({ fence }, at) => fence === at + 1), `fences of ${run.id} did not grow by one`);
    const open = attempts.filter(({ endedAtMs }) => endedAtMs === undefined);
    const held = run.state === 'running' || run.state === 'cancelling';
    holds(open.length === (held ? 1 : 0), `${run.id} is ${run.state} with ${open.length} open attempts`);
    holds((run.leaseHolder !== undefined) === held, `${run.id} is ${run.state} with a lease`);
    holds((run.gate !== undefined) === (run.state === 'parked'), `${run.id} is ${run.state} with a gate`);
    holds((run.endedAtMs !== undefined) === isTerminal(run.state), `${run.id} is ${run.state} with an end`);
    holds(
      calls.every((row) => row.state !== 'done' || row.outcome !== undefined),
      `a done call of ${run.id} has no outcome`,
    );
    const old = before.runs.find((one) => one.run.id === run.id);
    if (old === undefined) continue;
    holds(!isTerminal(old.run.state) || old.run.state === run.state, `${run.id} left ${old.run.state}`);
    holds(run.fence - old.run.fence <= 1, `the fence of ${run.id} jumped`);
    for (const row of old.calls.filter(({ state }) => state === 'done')) {
      const now = calls.find(({ id }) => id === row.id);
      holds(now?.state === 'done' && now.closedAtMs === row.closedAtMs, `call ${row.id} was done twice`);
    }
  }
  for (const row of before.deliveries.filter(({ state }) => state === 'delivered' || state === 'unknown')) {
    holds(after.deliveries.find(({ id }) => id === row.id)?.state === row.state, `delivery ${row.id} left ${row.state}`);
  }
  approvalViolations(before, after, holds);
  return found;
}

const ENDS: Readonly<Record<Approval['state'], readonly Approval['state'][]>> = {
  pending: ['pending', 'approved', 'denied', 'expired', 'withdrawn'],
  approved: ['approved', 'consumed', 'expired', 'withdrawn'],
  denied: ['denied'],
  expired: ['expired'],
  consumed: ['consumed'],
  withdrawn: ['withdrawn'],
};

function approvalViolations(before: Visible, after: Visible, holds: (ok: boolean, sentence: string) => void): void {
  const live = after.approvals.filter(({ state }) => LIVE_STATES.includes(state));
  holds(new Set(live.map(({ call }) => call)).size === live.length, 'a call has two live asks');
  for (const approval of after.approvals) {
    const { id, state, run: of, call, fingerprint } = approval;
    const old = before.approvals.find((one) => one.id === id);
    holds(ENDS[old?.state ?? 'pending'].includes(state), `${id} went from ${old?.state} to ${state}`);
    holds(old === undefined || old.fingerprint === fingerprint, `${id} changed what it is bound to`);
    holds((approval.answeredBy !== undefined) === (approval.answeredAtMs !== undefined), `${id} is half answered`);
    holds(state !== 'consumed' || approval.answeredBy !== undefined, `${id} was used without an answer`);
    const run = after.runs.find(({ run: { id: named } }) => named === of);
    const row = run?.calls.find((one) => one.id === call);
    holds(!LIVE_STATES.includes(state) || row?.state === 'prepared', `${id} is ${state} and its call ${row?.state}`);
    holds(!LIVE_STATES.includes(state) || (run !== undefined && !isTerminal(run.run.state)), `${id} outlived its run`);
    const waits = run?.run.state === 'parked' && run.run.gate?.ref === id;
    holds(!waits || state === 'pending', `a run is parked on ${id}, which is ${state}`);
    // Used and handed over are one write.
    if (state === 'consumed' && old?.state !== 'consumed')
      holds(row?.state === 'dispatched', `${id} was used and its call is ${row?.state}`);
  }
}
