import type { CompiledConfig } from '../../core/config.ts';
import type { NewEvent } from '../../core/events.ts';
import type { PolicyControl } from '../../core/policy/control.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { createKernelPolicy } from './kernel-policy.ts';
import { PolicySnapshots } from './snapshots.ts';
import type { ReloadingPolicyEngine } from './wasm-engine.ts';

/**
 * What people do to the policy of a state directory that no kernel owns: an engine is made for the moment, through the same gates, and what
 * it accepts is what the next kernel starts with.
 */
export function offlineControl(config: CompiledConfig, store: Pick<Store, 'decisions' | 'events'>, clock: Clock): PolicyControl {
  const withEngine = async <T>(use: (engine: ReloadingPolicyEngine) => Promise<T>): Promise<T> => {
    const events: NewEvent[] = [];
    const onEvent = (event: NewEvent) => events.push(event);
    const engine = await createKernelPolicy(config, { clock, decisions: store.decisions, onEvent, leaveDisk: true });
    try {
      return await use(engine);
    } finally {
      await engine.close();
      for (const event of events) await store.events.append(event, clock.now());
    }
  };
  return {
    apply: (request) => withEngine((engine) => engine.apply(request)),
    rollBack: (request) => withEngine((engine) => engine.rollBack(request)),
    snapshots: () => new PolicySnapshots(config.stateDir).list(),
  };
}
