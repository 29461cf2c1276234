import type { CompiledConfig } from '../../core/config.ts';
import type { NewEvent } from '../../core/events.ts';
import type { DecisionStore } from '../../core/ports/store.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { loadShipped } from './shipped.ts';
import { testServing } from './test-policy.ts';
import { createPolicyEngine, type ReloadingPolicyEngine } from './wasm-engine.ts';

/** Decisions that a change is replayed over before it is live: the newest ones. `policy replay` looks further back. */
const REPLAYED = 500;

/** The policy engine as a kernel runs it: with the configured places, its own decision log to replay and its state directory to remember. */
export function createKernelPolicy(
  { policy, stateDir, capacity, profile }: CompiledConfig,
  deps: {
    readonly clock: Clock;
    readonly decisions: DecisionStore;
    readonly onEvent: (event: NewEvent) => void;
    readonly leaveDisk?: boolean;
  },
): Promise<ReloadingPolicyEngine> {
  const { dir, siteDir, publicKey } = policy;
  return createPolicyEngine({
    dir,
    siteDir,
    publicKey,
    stateDir,
    leaveDisk: deps.leaveDisk ?? false,
    clock: deps.clock,
    pollMs: capacity.policyPollMs,
    onEvent: deps.onEvent,
    shipped: loadShipped,
    holdFirst: profile === 'production',
    recent: () => deps.decisions.since(0, REPLAYED),
    test: (serving) => testServing(serving, { dir, siteDir }),
  });
}
