import type { PruneBefore, Pruned, RetentionStore } from '../../../core/ports/retention-store.ts';
import { type Counting, LOOKS, nothingPruned, roomLeft } from '../prune-counts.ts';
import { toApproval } from './approval-rows.ts';
import type { Database, Tx } from './database.ts';
import type { ApprovalRecord } from './entities.ts';

const OLD_DECISIONS = `
delete from decisions where id in (
  select decisions.id from decisions join runs on runs.id = decisions.run
  where decisions.at_ms < ?1 and runs.ended_at_ms is not null
    and not exists (select 1 from calls where calls.run = runs.id and calls.state = 'unknown')
  order by decisions.at_ms limit ?2)`;

// `PASSING_EVENTS`, in words that SQLite plans with. The newest event is never removed: the next cursor is one more than it.
const LOOSE_EVENTS = `
delete from events where cursor in (
  select cursor from events
  where thread is null and at_ms < ?1 and cursor < (select max(cursor) from events)
    and type in ('membrane.refused', 'sandbox.recycled', 'sandbox.started', 'sandbox.stopped', 'store.pruned')
  order by at_ms limit ?2)`;

const NEXT_THREADS = 'select id, position from threads where pruned = 0 and position > ? order by position limit ?';

/** The newest run decides about most threads; only of one that has ended long ago are the others looked at. */
const LAST_END = 'select ended_at_ms from runs where thread = ? order by position desc limit 1';

const STILL_OPEN = `
select 1 from runs
where thread = ?1 and (ended_at_ms is null or ended_at_ms >= ?2
  or exists (select 1 from calls where calls.run = runs.id and calls.state = 'unknown')
  or exists (select 1 from deliveries where deliveries.run = runs.id and deliveries.state in ('prepared', 'sending')))
limit 1`;

const CALLS = `
delete from calls where id in (
  select calls.id from runs join calls on calls.run = runs.id where runs.thread = ?1 limit ?2)`;

const PERMITS = `
delete from permits where id in (
  select permits.id from runs join permits on permits.run = runs.id where runs.thread = ?1 limit ?2)`;

const DELIVERIES = `
delete from deliveries where id in (
  select deliveries.id from runs join deliveries on deliveries.run = runs.id where runs.thread = ?1 limit ?2)`;

const EVENTS = `
delete from events where cursor in (
  select cursor from events where thread = ?1 and cursor < (select max(cursor) from events) order by cursor limit ?2)`;

const APPROVALS = `
delete from approvals where id in (
  select approvals.id from runs join approvals on approvals.run = runs.id where runs.thread = ?1 limit ?2)
returning *`;

const DROP_USE = 'delete from approval_uses where sha256 = ? and approval = ?';

const DROP_FILE = 'delete from approval_files where sha256 = ?1 and not exists (select 1 from approval_uses where sha256 = ?1)';

const MARK = 'update threads set pruned = 1 where id = ?';

export function retentionStore(db: Database): RetentionStore {
  return { prune: (before, limit, from = 0) => db.write((tx) => prune(tx, before, limit, from)) };
}

async function prune(tx: Tx, { decisionsBeforeMs, threadsBeforeMs }: PruneBefore, limit: number, from: number): Promise<Pruned> {
  const counts = nothingPruned();
  const left = () => roomLeft(counts, limit);
  counts.decisions = await tx.run(OLD_DECISIONS, [decisionsBeforeMs, left()]);
  counts.events = await tx.run(LOOSE_EVENTS, [threadsBeforeMs, left()]);
  if (left() === 0) return { counts, next: from };
  const threads = await tx.all<{ id: string; position: number }>(NEXT_THREADS, [from, LOOKS]);
  let done = from;
  for (const { id, position } of threads) {
    if (await hasClosed(tx, id, threadsBeforeMs)) {
      await pruneThread(tx, id, counts, left);
      if (left() === 0) return { counts, next: done };
      await tx.run(MARK, [id]);
    }
    done = position;
  }
  return { counts, next: threads.length < LOOKS ? undefined : done };
}

async function hasClosed(tx: Tx, thread: string, beforeMs: number): Promise<boolean> {
  const last = await tx.get<{ ended_at_ms: number | null }>(LAST_END, [thread]);
  if (last?.ended_at_ms == null || last.ended_at_ms >= beforeMs) return false;
  return (await tx.get(STILL_OPEN, [thread, beforeMs])) === undefined;
}

/** As much of a closed thread as there is room for. */
async function pruneThread(tx: Tx, thread: string, counts: Counting, left: () => number): Promise<void> {
  counts.calls += await tx.run(CALLS, [thread, left()]);
  counts.permits += await tx.run(PERMITS, [thread, left()]);
  const approvals = (await tx.all<ApprovalRecord>(APPROVALS, [thread, left()])).map(toApproval);
  counts.approvals += approvals.length;
  for (const { id, files } of approvals) {
    for (const { sha256 } of files) {
      await tx.run(DROP_USE, [sha256, id]);
      counts.files += await tx.run(DROP_FILE, [sha256]);
    }
  }
  counts.deliveries += await tx.run(DELIVERIES, [thread, left()]);
  counts.events += await tx.run(EVENTS, [thread, left()]);
}
