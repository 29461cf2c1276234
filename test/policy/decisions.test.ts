import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadBundle } from '../../adapters/policy/bundle.ts';
import { testCompiledCases } from '../../adapters/policy/compiled-cases.ts';
import { ServingSnapshot } from '../../adapters/policy/serving-snapshot.ts';
import { createPolicyEngine, type ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { SAFETY } from '../../core/limits.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { CASES, PLAIN_CASES } from './support/cases.ts';
import { POLL_MS } from './support/engine.ts';
import { callInput } from './support/inputs.ts';
import { SHIPPED } from './support/policy-dir.ts';

const OPTIONS = { clock: systemClock, retryMs: POLL_MS, deadlineMs: SAFETY.policyDeadlineMs, memoryBytes: SAFETY.policyMemoryBytes };

describe('the shipped policy, compiled', () => {
  let serving: ServingSnapshot;
  let engine: ReloadingPolicyEngine;
  beforeAll(async () => {
    serving = await ServingSnapshot.start(await loadBundle(SHIPPED), OPTIONS);
    engine = await createPolicyEngine({ dir: SHIPPED, clock: systemClock, pollMs: POLL_MS, onEvent: () => undefined });
  });
  afterAll(() => Promise.all([serving.close(), engine.close()]));

  test.each(PLAIN_CASES)('$kind: $effect: $note', ({ input, effect, codes, obligations }) => {
    const verdict = serving.ask(JSON.stringify(input));
    expect(verdict.effect).toBe(effect);
    expect(verdict.reasons.map((reason) => reason.code).sort()).toEqual([...codes].sort());
    expect(verdict.obligations).toEqual(obligations);
  });

  test('every row of the table, those under other data too', async () => {
    expect(await testCompiledCases(serving.bundle, serving.module, systemClock)).toBe(CASES.length);
  });

  test('control: a row that says otherwise is told by its note', async () => {
    const [first] = CASES;
    if (first === undefined) throw new Error('the table is empty');
    const cases = [{ ...first, note: 'a row that is wrong', effect: 'deny' as const }];
    await expect(testCompiledCases({ ...serving.bundle, cases }, serving.module, systemClock)).rejects.toMatchObject({
      code: 'policy_test_failed',
      message: expect.stringContaining('a row that is wrong'),
    });
  });

  test('Y2 each decision names the digests of the snapshot that made it', () => {
    const decision = engine.decide(callInput());
    expect(decision.digests).toEqual(engine.status().digests);
    expect(decision.digests.rules).toMatch(/^[0-9a-f]{64}$/);
    expect(decision.digests.data).toMatch(/^[0-9a-f]{64}$/);
    expect(decision.digests.version).toBe(1);
  });
});
