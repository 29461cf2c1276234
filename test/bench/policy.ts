import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadPolicy } from '@open-policy-agent/opa-wasm';
import { toRegoInput } from '../../adapters/policy/marshal.ts';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { createPolicyEngine, type ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import type { PolicyInput } from '../../core/policy/types.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { egressInput } from '../policy/support/egress.ts';
import { shellInput } from '../policy/support/inputs.ts';
import type { Figure } from './figure.ts';
import { bundleCopy, denyPrograms, growEffects, listHosts, OpaServer } from './policy-load.ts';

const DIR = fileURLToPath(new URL('../../policies', import.meta.url));
const WARM_UP = 2_000;
const ROUNDS = 20_000;

/** A realistic question: a reviewed command with options, so that every rule of the kind has its say. */
const QUESTION = shellInput(['git', 'log', '--oneline', '-n', '20', '--since=2.weeks', '--', 'core', 'adapters']);

/** A request as a command line tool makes it, to a host two labels below a pattern. */
const REQUEST = egressInput({
  host: 'v1.api.example.org',
  path: '/repos/acme/outwork/pulls',
  headers: ['host', 'user-agent', 'accept', 'accept-encoding', 'authorization', 'content-type'].map((name) => ({
    name,
    value: 'as it may be',
  })),
});

interface Sample {
  readonly p50: number;
  readonly p99: number;
}

/**
 * Cost of a decision: the evaluation alone, and all that a caller waits for (bounds, marshalling, hand-over, deadline, reading); beside OPA's
 * own server on loopback, under a long list, and while rules are reloaded.
 */
export async function benchPolicy(): Promise<Figure[]> {
  const evaluation = await evaluationUs();
  const decision = await withEngine(DIR, async (engine) => sample(() => requireAllow(engine, QUESTION)));
  const server = await serverUs();
  const long = await grownUs((dir) => growEffects(dir, 10_000), QUESTION);
  const fewHosts = await hostsUs(1);
  const manyHosts = await hostsUs(10_000);
  const reload = await reloadMs();
  return [
    atMost('policy.evaluation.p50Us', 50, 'µs', evaluation.p50, null),
    atMost('policy.decision.p50Us', 100, 'µs', decision.p50, evaluation.p50),
    atMost('policy.decision.p99Us', 500, 'µs', decision.p99, evaluation.p99),
    {
      id: 'policy.opaServer.p50Us',
      target: '≥ 8 × a decision',
      measured: server.p50,
      baseline: decision.p50,
      ratio: server.p50 / decision.p50,
      met: server.p50 >= 8 * decision.p50,
    },
    atMostTimes('policy.decision.tenThousandEntries.p50Us', 3, 'the small list', long.p50, decision.p50),
    atMost('policy.egress.p50Us', 100, 'µs', fewHosts.p50, decision.p50),
    atMostTimes('policy.egress.tenThousandHosts.p50Us', 3, 'one host', manyHosts.p50, fewHosts.p50),
    atMost('policy.reload.ms', 100, 'ms', reload, null),
  ];
}

async function withEngine<T>(dir: string, use: (engine: ReloadingPolicyEngine) => Promise<T>): Promise<T> {
  const engine = await createPolicyEngine({ dir, clock: systemClock, pollMs: 60_000, onEvent: () => undefined });
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

function requireAllow(engine: ReloadingPolicyEngine, question: PolicyInput): void {
  if (engine.decide(question).effect !== 'allow') throw new Error('The question of the bench is not allowed.');
}

async function evaluationUs(): Promise<Sample> {
  const policy = await loadPolicy(await readFile(join(DIR, 'dist', 'policy.wasm')));
  policy.setData(JSON.parse((await loadSettings(DIR)).json) as object);
  const input = new TextEncoder().encode(JSON.stringify(toRegoInput(QUESTION))).buffer;
  return sample(() => policy.evaluate(input));
}

async function serverUs(): Promise<Sample> {
  const { dir, remove } = await bundleCopy(DIR);
  try {
    const data = join(dir, 'settings.json');
    await writeFile(data, (await loadSettings(dir)).json);
    await using server = await OpaServer.start(dir, data);
    const input = toRegoInput(QUESTION);
    const us: number[] = [];
    for (let i = 0; i < 3_000; i += 1) {
      const begun = performance.now();
      if ((await server.decide(input)) !== 'allow') throw new Error('The server does not allow the question of the bench.');
      if (i >= 500) us.push((performance.now() - begun) * 1000);
    }
    return quantiles(Float64Array.from(us));
  } finally {
    await remove();
  }
}

/** Decisions on one question under data that was made larger. */
async function grownUs(grow: (dir: string) => Promise<void>, question: PolicyInput): Promise<Sample> {
  const { dir, remove } = await bundleCopy(DIR);
  try {
    await grow(dir);
    return await withEngine(dir, async (engine) => sample(() => requireAllow(engine, question)));
  } finally {
    await remove();
  }
}

const hostsUs = (entries: number): Promise<Sample> => grownUs((dir) => listHosts(dir, entries, 'example.org'), REQUEST);

const RELOADS = 7;
const IN_FLIGHT = 1_000;

/** From the moment a change lies on disk to the moment it decides, while decisions are asked for; the median of some. None fails, none is mixed. */
async function reloadMs(): Promise<number> {
  const { dir, remove } = await bundleCopy(DIR);
  try {
    return await withEngine(dir, async (engine) => {
      const curl = shellInput(['curl']);
      const took: number[] = [];
      const said = new Map([[engine.status().digests.data, engine.decide(curl).effect]]);
      for (let round = 0; round < RELOADS; round += 1) {
        const denies = round % 2 === 0;
        await denyPrograms(dir, denies ? '[curl]' : '[]');
        const begun = performance.now();
        const change = (denies ? engine.reload() : engine.apply({ widenBy: 'bench' })).then(() => took.push(performance.now() - begun));
        for (let i = 0; i < IN_FLIGHT; i += 1) {
          const { effect, digests } = engine.decide(curl);
          if (digests.data === '' || (said.get(digests.data) ?? effect) !== effect) throw new Error('A decision failed or was mixed.');
          said.set(digests.data, effect);
          if (i % 10 === 9) await turn();
        }
        await change;
        if (engine.decide(curl).effect !== (denies ? 'deny' : 'allow')) throw new Error('The change does not decide.');
      }
      return quantiles(Float64Array.from(took)).p50;
    });
  } finally {
    await remove();
  }
}

function sample(work: () => void): Sample {
  for (let i = 0; i < WARM_UP; i += 1) work();
  const us = new Float64Array(ROUNDS);
  for (let i = 0; i < ROUNDS; i += 1) {
    const begun = performance.now();
    work();
    us[i] = (performance.now() - begun) * 1000;
  }
  return quantiles(us);
}

function quantiles(values: Float64Array): Sample {
  values.sort();
  return { p50: values[Math.floor(values.length / 2)] ?? 0, p99: values[Math.floor(values.length * 0.99)] ?? 0 };
}

const atMost = (id: string, target: number, unit: string, measured: number, baseline: number | null): Figure => ({
  id,
  target: `≤ ${target} ${unit}`,
  measured,
  baseline,
  ratio: baseline === null ? null : measured / baseline,
  met: measured <= target,
});

const atMostTimes = (id: string, times: number, what: string, measured: number, baseline: number): Figure => ({
  id,
  target: `≤ ${times} × ${what}`,
  measured,
  baseline,
  ratio: measured / baseline,
  met: measured <= times * baseline,
});
