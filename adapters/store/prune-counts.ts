import type { PruneCounts } from '../../core/ports/retention-store.ts';

/** Threads that one call of `prune` looks at: in a database a look is one read of an index. */
export const LOOKS = 200;

/** `PruneCounts` while they are counted. */
export type Counting = { -readonly [Kind in keyof PruneCounts]: number };

export const nothingPruned = (): Counting => ({
  decisions: 0,
  calls: 0,
  permits: 0,
  approvals: 0,
  files: 0,
  deliveries: 0,
  events: 0,
});

/** How many rows more a call may remove that may remove `limit` (S20). */
export const roomLeft = (counts: PruneCounts, limit: number): number =>
  Math.max(0, limit - Object.values(counts).reduce((sum, count) => sum + count, 0));
