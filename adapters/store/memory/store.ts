import { randomUUID } from 'node:crypto';
import { type IdKind, newId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import { ChangeSignal } from '../change-signal.ts';
import { memoryApprovals } from './approvals.ts';
import { memoryCalls } from './calls.ts';
import { memoryCheckpoints } from './checkpoints.ts';
import { memoryDecisions } from './decisions.ts';
import { memoryDeliveries } from './deliveries.ts';
import { memoryEvents } from './events.ts';
import { memoryRetention } from './prune.ts';
import { memoryRuns } from './runs.ts';
import { type Memory, MemoryState } from './state.ts';
import { memoryThreads } from './threads.ts';
import { memoryUsers } from './users.ts';

export interface MemoryStoreOptions {
  /** Given again to a second store, it is what a file is to a kernel that restarts. */
  readonly state?: MemoryState;
  readonly newId?: (kind: IdKind, nowMs: number) => string;
}

/**
 * The reference store: the contract in plain lists, not durable. Each method decides and writes without awaiting anything, so it is one
 * transaction. Tests compare the real stores with it.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const memory: Memory = {
    state: options.state ?? new MemoryState(),
    changes: new ChangeSignal(),
    instance: randomUUID(),
    newId: options.newId ?? newId,
  };
  memory.changes.advance(memory.state.events.at(-1)?.cursor ?? 0);
  return {
    users: memoryUsers(memory),
    threads: memoryThreads(memory),
    runs: memoryRuns(memory),
    calls: memoryCalls(memory),
    decisions: memoryDecisions(memory),
    approvals: memoryApprovals(memory),
    checkpoints: memoryCheckpoints(memory),
    events: memoryEvents(memory),
    deliveries: memoryDeliveries(memory),
    retention: memoryRetention(memory),
    probe: () => Promise.resolve(),
    async close() {
      memory.changes.close();
    },
  };
}
