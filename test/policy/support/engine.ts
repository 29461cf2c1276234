import { onTestFinished } from 'vitest';
import type { Bundle } from '../../../adapters/policy/bundle.ts';
import { ServingSnapshot } from '../../../adapters/policy/serving-snapshot.ts';
import { createPolicyEngine, type PolicyEngineOptions, type ReloadingPolicyEngine } from '../../../adapters/policy/wasm-engine.ts';
import type { NewEvent } from '../../../core/events.ts';
import { SAFETY } from '../../../core/limits.ts';
import { type Clock, systemClock } from '../../../core/seams/clock.ts';

export const POLL_MS = 500;

/** A clock whose polls a test lets happen, one at a time. */
export class PollClock implements Clock {
  #polls: (() => void)[] = [];
  #registered: (() => void) | undefined;

  #now = 1_700_000_000_000;

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  after(ms: number, fn: () => void): () => void {
    if (ms !== POLL_MS) return () => undefined;
    this.#polls.push(fn);
    this.#registered?.();
    return () => {
      this.#polls = this.#polls.filter((one) => one !== fn);
    };
  }

  /** Lets one poll happen; resolves when it has looked, loaded what there was, and waits for the next. */
  async poll(): Promise<void> {
    const next = new Promise<void>((resolve) => {
      this.#registered = resolve;
    });
    this.#polls.shift()?.();
    await next;
  }
}

export interface TestEngine {
  readonly engine: ReloadingPolicyEngine;
  readonly clock: PollClock;
  readonly events: NewEvent[];
}

/** An engine that is closed when the test ends. */
export async function startEngine(dir: string, change: Partial<PolicyEngineOptions> = {}): Promise<TestEngine> {
  const clock = new PollClock();
  const events: NewEvent[] = [];
  const engine = await createPolicyEngine({ dir, clock, pollMs: POLL_MS, onEvent: (event) => events.push(event), ...change });
  onTestFinished(() => engine.close());
  return { engine, clock, events };
}

/** One bundle that can be asked, closed when the test ends. Its deadline is that of a test of answers, not of speed. */
export async function serve(bundle: Bundle): Promise<ServingSnapshot> {
  const { policyMemoryBytes: memoryBytes } = SAFETY;
  const deadlineMs = 5_000;
  const serving = await ServingSnapshot.start(bundle, { clock: systemClock, retryMs: POLL_MS, deadlineMs, memoryBytes });
  onTestFinished(() => serving.close());
  return serving;
}
