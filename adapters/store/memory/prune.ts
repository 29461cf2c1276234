import { PASSING_EVENTS } from '../../../core/events.ts';
import type { RetentionStore } from '../../../core/ports/retention-store.ts';
import { type Counting, LOOKS, nothingPruned, roomLeft } from '../prune-counts.ts';
import type { Memory, MemoryState } from './state.ts';

export function memoryRetention({ state }: Memory): RetentionStore {
  return {
    async prune({ decisionsBeforeMs, threadsBeforeMs }, limit, from = 0) {
      const counts = nothingPruned();
      const left = () => roomLeft(counts, limit);
      const over = new Set([...state.runs.values()].filter((run) => isOver(state, run.id)).map(({ id }) => id));
      const old = state.decisions.filter((row) => row.atMs < decisionsBeforeMs && over.has(row.run)).sort((a, b) => a.atMs - b.atMs);
      counts.decisions = remove(state.decisions, old, left());
      const newest = state.events.at(-1);
      const loose = state.events
        .filter((event) => event.thread === undefined && event.atMs < threadsBeforeMs && event !== newest)
        .filter(({ type }) => PASSING_EVENTS.includes(type));
      counts.events = remove(
        state.events,
        loose.sort((a, b) => a.atMs - b.atMs),
        left(),
      );
      if (left() === 0) return { counts, next: from };
      const threads = state.threads.flatMap(({ id }, at) => (at + 1 > from && !state.pruned.has(id) ? [{ id, position: at + 1 }] : []));
      let done = from;
      for (const { id, position } of threads.slice(0, LOOKS)) {
        if (hasClosed(state, id, threadsBeforeMs)) {
          pruneThread(state, id, counts, left);
          if (left() === 0) return { counts, next: done };
          state.pruned.add(id);
        }
        done = position;
      }
      return { counts, next: threads.length < LOOKS ? undefined : done };
    },
  };
}

const isOver = ({ runs, calls }: MemoryState, run: string): boolean =>
  runs.get(run)?.endedAtMs !== undefined && !calls.some((row) => row.run === run && row.state === 'unknown');

function hasClosed(state: MemoryState, thread: string, beforeMs: number): boolean {
  const runs = [...state.runs.values()].filter((run) => run.thread === thread);
  const open = state.deliveries.some((row) => row.thread === thread && (row.state === 'prepared' || row.state === 'sending'));
  return !open && runs.every((run) => isOver(state, run.id) && (run.endedAtMs ?? beforeMs) < beforeMs);
}

function pruneThread(state: MemoryState, thread: string, counts: Counting, left: () => number): void {
  const runs = new Set([...state.runs.values()].filter((run) => run.thread === thread).map(({ id }) => id));
  const ofRuns = <Row extends { readonly run: string }>(rows: readonly Row[]) => rows.filter(({ run }) => runs.has(run));
  counts.calls += remove(state.calls, ofRuns(state.calls), left());
  const permits = [...state.permits].filter(([, { run }]) => runs.has(run)).slice(0, left());
  for (const [id] of permits) state.permits.delete(id);
  counts.permits += permits.length;
  counts.approvals += remove(state.approvals, ofRuns(state.approvals), left());
  const used = new Set(state.approvals.flatMap(({ files }) => files.map(({ sha256 }) => sha256)));
  for (const sha256 of [...state.approvalFiles.keys()].filter((one) => !used.has(one))) {
    state.approvalFiles.delete(sha256);
    counts.files += 1;
  }
  counts.deliveries += remove(state.deliveries, ofRuns(state.deliveries), left());
  const newest = state.events.at(-1);
  counts.events += remove(
    state.events,
    state.events.filter((event) => event.thread === thread && event !== newest),
    left(),
  );
}

/** Takes the first `most` of `rows` out of a list. @returns how many that were */
function remove<Row>(list: Row[], rows: readonly Row[], most: number): number {
  const gone = new Set(rows.slice(0, most));
  const kept = list.filter((row) => !gone.has(row));
  list.splice(0, list.length, ...kept);
  return gone.size;
}
