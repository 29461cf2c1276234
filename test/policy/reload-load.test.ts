import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import { loadBundle } from '../../adapters/policy/bundle.ts';
import { FileCache } from '../../adapters/policy/file-cache.ts';
import type { ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import type { Decision } from '../../core/policy/types.ts';
import { startEngine } from './support/engine.ts';
import { placementInput, shellInput } from './support/inputs.ts';
import { copyOfShipped } from './support/policy-dir.ts';

const RELOADS = 50;
/** Requests that have begun and not ended, at any moment; each asks twice, with other requests and reloads in between. */
const IN_FLIGHT = 1000;
/** Of those, how many take a step in one turn of the event loop. */
const STEPS = 5;

/** Rules that narrow, beside those that are shipped. */
async function strictRules(): Promise<string> {
  const dir = await copyOfShipped();
  const path = join(dir, 'outwork', 'placement', 'harness.rego');
  const text = await readFile(path, 'utf8');
  await writeFile(
    path,
    text.replace('input.placement == "host-loop-shell"', 'input.placement in {"disposable-per-run", "host-loop-shell"}'),
  );
  await buildPolicy(dir);
  return dir;
}

/** What one snapshot answers: it alone denies these programs, and this placement or not. */
interface Known {
  readonly round: number;
  readonly strict: boolean;
}

/** Digests of a snapshot as one word. */
const nameOf = ({ digests }: Pick<Decision, 'digests'>): string => `${digests.rules} ${digests.data} ${digests.version}`;

/** Why a decision is none that the snapshot it names would give; undefined when it is. */
function faultOf(decision: Decision, known: ReadonlyMap<string, Known>, expected: (of: Known) => string): string | undefined {
  const of = known.get(nameOf(decision));
  if (of === undefined) return `made by a snapshot that never was: ${nameOf(decision)}`;
  const told = [decision.effect, ...decision.reasons.map(({ code }) => code)].join(' ');
  return told === expected(of) ? undefined : `round ${of.round} says ${expected(of)}, told was ${told}`;
}

/** One request: a question about data, later one about rules. Yields what is wrong with each answer. */
function* request(engine: ReloadingPolicyEngine, round: number, known: ReadonlyMap<string, Known>): Generator<string | undefined> {
  const command = engine.decide(shellInput([`p${round}`]));
  yield faultOf(command, known, (of) => (of.round >= round ? 'deny program_denied' : 'allow capability_allowed'));
  const placed = engine.decide(placementInput({ harness: 'acme', placement: 'disposable-per-run' }));
  yield faultOf(placed, known, ({ strict }) => (strict ? 'deny harness_needs_sandbox' : 'allow placement_allowed'));
}

test('BL-133 a thousand requests in flight during fifty reloads: none failed, none mixed', async () => {
  const [dir, strict, plain] = await Promise.all([copyOfShipped(), strictRules(), copyOfShipped()]);
  const data = join(dir, 'data', 'call.yaml');
  const text = await readFile(data, 'utf8');
  const known = new Map<string, Known>();
  const cache = new FileCache();
  const put = async (round: number) => {
    const isStrict = round % 2 === 1;
    const from = isStrict ? strict : plain;
    for (const path of ['outwork/placement/harness.rego', 'dist']) await cp(join(from, path), join(dir, path), { recursive: true });
    const denied = Array.from({ length: round + 1 }, (_, at) => `p${at}`);
    await writeFile(data, text.replace(/^denied_programs: .*$/m, `denied_programs: [${denied.join(', ')}]`));
    known.set(nameOf(await loadBundle(dir, undefined, cache)), { round, strict: isStrict });
  };
  await put(0);
  const { engine } = await startEngine(dir);

  const faults: string[] = [];
  const inFlight: ReturnType<typeof request>[] = [];
  let begun = 0;
  let changing = true;
  const serve = async () => {
    for (; changing || inFlight.length > 0; await turn()) {
      for (; changing && inFlight.length < IN_FLIGHT; begun += 1) inFlight.push(request(engine, begun % (RELOADS + 1), known));
      for (const one of inFlight.splice(0, STEPS)) {
        const { done, value } = one.next();
        if (value !== undefined) faults.push(value);
        if (done !== true) inFlight.push(one);
      }
    }
  };
  const served = serve();
  for (let round = 1; round <= RELOADS; round += 1) {
    await put(round);
    // Rules that are strict in every other round widen in the next: a person says so.
    if (round % 2 === 1) await engine.reload();
    else await engine.apply({ widenBy: 'paula' });
    expect(engine.status()).toMatchObject({ reloadFault: undefined });
    expect(known.get(nameOf(engine.status()))?.round).toBe(round);
  }
  changing = false;
  await served;
  expect([...new Set(faults)]).toEqual([]);
  expect(begun).toBeGreaterThan(IN_FLIGHT * 2);
  expect(known.size).toBe(RELOADS + 1);

  // Control: a decision under digests of another round is told apart.
  const now = engine.decide(shellInput(['p1']));
  expect(faultOf({ ...now, digests: { ...now.digests, rules: 'other' } }, known, () => 'deny program_denied')).toContain('never was');
  expect(faultOf(now, known, () => 'allow capability_allowed')).toContain('told was deny');
}, 120_000);
