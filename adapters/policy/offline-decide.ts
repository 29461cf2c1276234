import type { CompiledConfig } from '../../core/config.ts';
import type { NewEvent } from '../../core/events.ts';
import type { Decision, PolicyInput } from '../../core/policy/types.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { createKernelPolicy } from './kernel-policy.ts';

/** One decision of the policy of a state directory that no kernel owns: an engine is made for the moment, through the same gates. */
export function offlineDecide(
  config: CompiledConfig,
  store: Pick<Store, 'decisions' | 'events'>,
  clock: Clock,
): (input: PolicyInput) => Promise<Decision> {
  return async (input) => {
    const events: NewEvent[] = [];
    const engine = await createKernelPolicy(config, { clock, decisions: store.decisions, onEvent: (event) => events.push(event) });
    try {
      return engine.decide(input);
    } finally {
      await engine.close();
      for (const event of events) await store.events.append(event, clock.now());
    }
  };
}
