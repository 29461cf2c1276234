/** What is over at a moment, by kind. Points in time, in milliseconds since the epoch. */
export interface PruneBefore {
  /** Decisions made earlier. */
  readonly decisionsBeforeMs: number;
  /** Threads that closed earlier. */
  readonly threadsBeforeMs: number;
}

/** How many rows were removed, by kind. */
export interface PruneCounts {
  readonly decisions: number;
  readonly calls: number;
  readonly permits: number;
  readonly approvals: number;
  /** Pinned files that no ask is bound to any more. */
  readonly files: number;
  readonly deliveries: number;
  readonly events: number;
}

export interface Pruned {
  readonly counts: PruneCounts;
  /** Where to go on; undefined when all that is over is gone. */
  readonly next: number | undefined;
}

/**
 * What is kept no longer, part of the `Store`. A run is over when it has ended and no row of its ledger is `unknown`; a thread has closed when
 * all of its runs are over and nothing of it waits for delivery, at the end of the last one. A message opens it again.
 *
 * - S19 `prune` removes decisions of runs that are over; of closed threads ledger rows and permits, asks with the files that no other ask
 *   brought, deliveries, and events; and events of no thread that are no record of who was given what (`PASSING_EVENTS`). Users, threads,
 *   messages, runs and attempts stay, and whatever a run, ask, delivery or `unknown` row that is not over needs.
 * - S20 one call removes about `limit` rows at most, in one transaction; the newest event stays, so no cursor is given twice.
 */
export interface RetentionStore {
  /** @param from - `next` of the call before; the first one has none */
  prune(before: PruneBefore, limit: number, from?: number): Promise<Pruned>;
}
