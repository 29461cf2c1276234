import type { RunCount, RunStore } from '../../../core/ports/store.ts';
import type { GateKind, PlacementName } from '../../../core/run/types.ts';
import { afterCancel, requireMove, requireSettlement } from '../run-transition.ts';
import { isStorable, requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import { tidyEnded, withoutAnsweredGate } from './approval-effects.ts';
import { claimRun } from './claim-run.ts';
import type { Database } from './database.ts';
import { AttemptEntity, RunEntity, type RunRecord } from './entities.ts';
import { expireLeases } from './expire-leases.ts';
import { HELD_BY, requireHeld, staleFence } from './fence.ts';
import { endAttempt, landRun, requireRun } from './move-run.ts';
import { toAttempt, toRun } from './rows.ts';

const HEARTBEAT = `update runs set lease_until_ms = ?, lease_ms = ? where ${HELD_BY} returning cancel_requested`;

const SEAT = 'update attempts set placement = ?, engine = ?, sandbox = ? where run = ? and fence = ?';

/** In order of attempts, so that the last one of a run counts. */
const LAST_SEATS = `
select run, placement from attempts
where run in (select value from json_each(?)) and placement is not null
order by run, fence`;

interface CountRecord {
  readonly state: RunCount['state'];
  readonly gate: GateKind | null;
  readonly count: number;
}

/** One look at each of three partial indexes, however many runs have ended. */
const UNFINISHED = `
select state, null as gate, count(*) as count from runs where state = 'queued' having count(*) > 0
union all
select state, null, count(*) from runs where state in ('running', 'cancelling') group by state
union all
select state, json_extract(gate, '$.kind'), count(*) from runs indexed by runs_one_active_per_thread
where state in ('running', 'parked', 'cancelling') and state = 'parked' group by 1, 2`;

/** By the index of runs that hold their thread, however many have ended. */
const PARKED_AT = `
select * from runs indexed by runs_one_active_per_thread
where state in ('running', 'parked', 'cancelling') and state = 'parked' and json_extract(gate, '$.kind') = ? order by +position`;

export function runStore(db: Database): RunStore {
  return {
    claim: (claim) => claimRun(db, claim),
    async heartbeat(ref, nowMs, leaseMs) {
      return db.write(async (tx) => {
        const row = await tx.get<Pick<RunRecord, 'cancel_requested'>>(HEARTBEAT, [nowMs + leaseMs, leaseMs, ref.run, ref.fence]);
        if (row === undefined) throw staleFence(ref, 'lease_lost');
        return { cancelRequested: Boolean(row.cancel_requested) };
      });
    },
    async seat(ref, { placement, engine, sandbox, event, nowMs }) {
      requireStorable([sandbox, event]);
      await db.write(async (tx) => {
        await requireHeld(tx, ref);
        await tx.run(SEAT, [placement, engine, sandbox, ref.run, ref.fence]);
        await appendEvent(db, tx, event, nowMs);
      });
    },
    async settle(ref, change) {
      requireStorable(change);
      return db.write(async (tx) => {
        const run = await requireHeld(tx, ref);
        requireSettlement(run.state, change.to);
        await endAttempt(tx, run, change.outcome, change.nowMs);
        const after = await landRun(tx, run, change, change.nowMs);
        await appendEvent(db, tx, change.event, change.nowMs);
        await tidyEnded(db, tx, after, change.nowMs);
        return withoutAnsweredGate(db, tx, after, change.nowMs);
      });
    },
    async move(id, change) {
      requireStorable([id, change]);
      return db.write(async (tx) => {
        const run = await requireRun(tx, id);
        requireMove(run.state, change.to, change.from);
        const after = await landRun(tx, run, change, change.nowMs);
        await appendEvent(db, tx, change.event, change.nowMs);
        await tidyEnded(db, tx, after, change.nowMs);
        return after;
      });
    },
    async requestCancel(id, event, nowMs) {
      requireStorable([id, event]);
      return db.write(async (tx) => {
        const run = await requireRun(tx, id);
        const to = afterCancel(run.state);
        if (to === undefined) return run;
        const after = await landRun(tx, { ...run, cancelRequested: true }, { to }, nowMs);
        await appendEvent(db, tx, event, nowMs);
        await tidyEnded(db, tx, after, nowMs);
        return after;
      });
    },
    expire: (nowMs, reclaimBudget, soleHolder) => expireLeases(db, nowMs, reclaimBudget, soleHolder),
    async get(id) {
      if (!isStorable(id)) return undefined;
      const row = await db.get<RunRecord>('select * from runs where id = ?', [id]);
      return row === undefined ? undefined : toRun(row);
    },
    async list({ tenant, thread, actor, states, limit }) {
      const where = {
        ...(tenant === undefined ? {} : { tenant }),
        ...(thread === undefined ? {} : { thread }),
        ...(actor === undefined ? {} : { actor }),
        ...(states === undefined ? {} : { state: { $in: [...states] } }),
      };
      return (await db.find(RunEntity, where, { orderBy: { position: 'desc' }, limit })).map(toRun);
    },
    async parkedAt(gate) {
      return (await db.all<RunRecord>(PARKED_AT, [gate])).map(toRun);
    },
    async unfinished() {
      return (await db.all<CountRecord>(UNFINISHED, [])).map(({ state, gate, count }) => ({ state, gate: gate ?? undefined, count }));
    },
    async attempts(run) {
      return (await db.find(AttemptEntity, { run }, { orderBy: { fence: 'asc' } })).map(toAttempt);
    },
    async lastSeats(runs) {
      const rows = await db.all<{ run: string; placement: PlacementName }>(LAST_SEATS, [JSON.stringify(runs)]);
      return new Map(rows.map(({ run, placement }) => [run, placement]));
    },
  };
}
