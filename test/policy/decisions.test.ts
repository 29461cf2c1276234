import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPolicyEngine, type ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { CASES } from './support/cases.ts';
import { POLL_MS } from './support/engine.ts';
import { SHIPPED } from './support/policy-dir.ts';

describe('the shipped policy with the shipped data', () => {
  let engine: ReloadingPolicyEngine;
  beforeAll(async () => {
    engine = await createPolicyEngine({ dir: SHIPPED, clock: systemClock, pollMs: POLL_MS, onEvent: () => undefined });
  });
  afterAll(() => engine.close());

  test.each(CASES)('$effect: $note', ({ input, effect, codes, lowered }) => {
    const decision = engine.decide(input);
    expect(decision.effect).toBe(effect);
    expect(decision.reasons.map((reason) => reason.code)).toEqual(codes);
    expect(decision.obligations).toEqual(lowered === undefined ? [] : [{ kind: 'effect_class', class: lowered }]);
  });

  test('Y2 each decision names the digests of the snapshot that made it', () => {
    const decision = engine.decide(CASES[0]?.input as never);
    expect(decision.digests).toEqual(engine.status().digests);
    expect(decision.digests.rules).toMatch(/^[0-9a-f]{64}$/);
    expect(decision.digests.data).toMatch(/^[0-9a-f]{64}$/);
  });
});
