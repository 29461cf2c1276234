import { afterEach, beforeEach, describe } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import type { MakeWorld, StoreWorld } from '../store/worlds.ts';
import { approvalEndClauses } from './store-approval-ends.ts';
import { approvalClauses } from './store-approvals.ts';
import { callClauses } from './store-calls.ts';
import { checkpointClauses } from './store-checkpoints.ts';
import { decisionClauses } from './store-decisions.ts';
import { deliveryClauses } from './store-deliveries.ts';
import { ingressClauses } from './store-ingress.ts';
import { ownerClauses } from './store-owners.ts';
import { retentionClauses } from './store-retention.ts';
import { runClauses } from './store-runs.ts';

/** The world of the current test, made before and thrown away after each. */
export interface Current {
  readonly store: Store;
  readonly world: StoreWorld;
}

/** The contract of `core/ports/store.ts`, clause by clause, over any store that `make` makes. */
export function storeConformance(name: string, make: MakeWorld): void {
  describe(`${name} store`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await make();
    });
    afterEach(() => world.dispose());
    const current: Current = {
      get store() {
        return world.store;
      },
      get world() {
        return world;
      },
    };
    ingressClauses(current);
    ownerClauses(current);
    runClauses(current);
    callClauses(current);
    approvalClauses(current);
    approvalEndClauses(current);
    decisionClauses(current);
    checkpointClauses(current);
    deliveryClauses(current);
    retentionClauses(current);
  });
}
