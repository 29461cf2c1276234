import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { loadPolicy } from '@open-policy-agent/opa-wasm';
import { toRegoInput } from '../../adapters/policy/marshal.ts';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { createPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { shellInput } from '../policy/support/inputs.ts';
import type { Figure } from './figure.ts';

const DIR = fileURLToPath(new URL('../../policies', import.meta.url));
const WARM_UP = 2_000;
const ROUNDS = 20_000;

/** A realistic question: a reviewed command with options, so that every rule of the kind has its say. */
const QUESTION = shellInput(['git', 'log', '--oneline', '-n', '20', '--since=2.weeks', '--', 'core', 'adapters']);

/** Cost of a decision: the evaluation alone, and all that a caller waits for (bounds, marshalling, hand-over, deadline, reading). */
export async function benchPolicy(): Promise<Figure[]> {
  const evaluation = await evaluationUs();
  const engine = await createPolicyEngine({ dir: DIR, clock: systemClock, pollMs: 60_000, onEvent: () => undefined });
  try {
    const decision = sample(() => {
      if (engine.decide(QUESTION).effect !== 'allow') throw new Error('The question of the bench is not allowed.');
    });
    return [
      figure('policy.evaluation.p50Us', 50, evaluation.p50, null),
      figure('policy.decision.p50Us', 100, decision.p50, evaluation.p50),
      figure('policy.decision.p99Us', 500, decision.p99, evaluation.p99),
    ];
  } finally {
    await engine.close();
  }
}

async function evaluationUs(): Promise<{ readonly p50: number; readonly p99: number }> {
  const policy = await loadPolicy(await readFile(join(DIR, 'dist', 'policy.wasm')));
  policy.setData(JSON.parse((await loadSettings(DIR)).json) as object);
  const input = new TextEncoder().encode(JSON.stringify(toRegoInput(QUESTION))).buffer;
  return sample(() => policy.evaluate(input));
}

function sample(work: () => void): { readonly p50: number; readonly p99: number } {
  for (let i = 0; i < WARM_UP; i += 1) work();
  const us = new Float64Array(ROUNDS);
  for (let i = 0; i < ROUNDS; i += 1) {
    const begun = performance.now();
    work();
    us[i] = (performance.now() - begun) * 1000;
  }
  us.sort();
  return { p50: us[ROUNDS / 2] ?? 0, p99: us[Math.floor(ROUNDS * 0.99)] ?? 0 };
}

const figure = (id: string, targetUs: number, measured: number, baseline: number | null): Figure => ({
  id,
  target: `≤ ${targetUs} µs`,
  measured,
  baseline,
  ratio: baseline === null ? null : measured / baseline,
  met: measured <= targetUs,
});
