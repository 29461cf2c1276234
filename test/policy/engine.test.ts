import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PolicyWorker, type PolicyWorkerOptions } from '../../adapters/policy/policy-worker.ts';
import { ENTRYPOINT } from '../../adapters/policy/sources.ts';
import type { Json } from '../../core/json.ts';
import { SAFETY } from '../../core/limits.ts';
import type { Decision } from '../../core/policy/types.ts';
import { startEngine } from './support/engine.ts';
import { callInput, shellInput } from './support/inputs.ts';
import { SHIPPED, tinyPolicy } from './support/policy-dir.ts';

/** Says what it is told to say, and misbehaves when it is told to. */
const OBEDIENT = `
decision := input.args.document

decision := 1 if input.args.conflict

decision := 2 if input.args.conflict

decision := _said("slow", "At last.") if {
	input.args.slow
	count([1 | some i in numbers.range(1, 120); some j in numbers.range(1, 120); i * j == 7]) > 0
}

decision := _said("long", _ten_times(input.args.text)) if input.args.wanted == "text"

decision := _said("large", "At last.") if {
	input.args.wanted == "memory"
	endswith(_ten_times(_ten_times(_ten_times(input.args.text))), "a")
}

_ten_times(x) := concat("", [x, x, x, x, x, x, x, x, x, x])

_said(code, message) := {"effect": "allow", "reasons": [{"code": code, "message": message}], "obligations": []}
`;

const GOOD = { effect: 'allow', reasons: [{ code: 'fine', message: 'It is fine.' }], obligations: [] };
const ask = (args: Json) => callInput({ args });
const codeOf = (decision: Decision): string | undefined => decision.reasons[0]?.code;

describe('BL-125 what a compiled policy says is taken at its word only when the word is well formed', () => {
  test.each<[string, Json, string]>([
    ['undefined', {}, 'policy_undefined'],
    ['null', { document: null }, 'policy_malformed'],
    ['true', { document: true }, 'policy_malformed'],
    ['1', { document: 1 }, 'policy_malformed'],
    ['"true"', { document: 'true' }, 'policy_malformed'],
    ['{}', { document: {} }, 'policy_malformed'],
    ['[]', { document: [] }, 'policy_malformed'],
    ['{"allow":"yes"}', { document: { allow: 'yes' } }, 'policy_malformed'],
    ['an unknown effect', { document: { ...GOOD, effect: 'yes' } }, 'policy_malformed'],
    ['an unknown obligation', { document: { ...GOOD, obligations: [{ kind: 'quarantine' }] } }, 'policy_unknown_obligation'],
    ['more than fits', { wanted: 'text', text: 'a'.repeat(10_000) }, 'policy_malformed'],
  ])('%s → deny', async (_, args, code) => {
    const { engine } = await startEngine(await tinyPolicy(OBEDIENT));
    const decision = engine.decide(ask(args));
    expect(decision).toMatchObject({ effect: 'deny', obligations: [] });
    expect(codeOf(decision)).toBe(code);
    expect(engine.decide(ask({ document: GOOD })).effect).toBe('allow');
  });

  test('an engine whose bundle lacks the entrypoint does not start', async () => {
    const dir = await tinyPolicy('decision := 1');
    const options = await workerOptions(dir);
    await expect(PolicyWorker.start({ ...options, entrypoint: 'outwork/other' })).rejects.toMatchObject({ code: 'policy_malformed' });
  });
});

describe('Y1 whatever happens inside, decide answers, and the next question is served', () => {
  test('a policy that takes too long → policy_timeout', async () => {
    const { engine } = await startEngine(await tinyPolicy(OBEDIENT));
    expect(codeOf(engine.decide(ask({ slow: true })))).toBe('policy_timeout');
    expect(engine.decide(ask({ document: GOOD })).effect).toBe('allow');
  });

  test('the same policy allows when nothing stops it (control)', async () => {
    const worker = await startWorker(await tinyPolicy(OBEDIENT), { memoryBytes: 512 * 1024 * 1024 });
    const evaluation = worker.evaluate(JSON.stringify({ args: { slow: true } }), 60_000);
    expect(evaluation).toMatchObject({ outcome: 'answer', text: expect.stringContaining('At last.') });
  });

  test('a policy that stops with an error → policy_trap', async () => {
    const { engine } = await startEngine(await tinyPolicy(OBEDIENT));
    expect(codeOf(engine.decide(ask({ conflict: true })))).toBe('policy_trap');
    expect(engine.decide(ask({ document: GOOD })).effect).toBe('allow');
  });

  test('a policy that needs too much memory → policy_memory', async () => {
    const { engine } = await startEngine(await tinyPolicy(OBEDIENT), { memoryBytes: 1024 * 1024 });
    expect(codeOf(engine.decide(ask({ wanted: 'memory', text: 'a'.repeat(50_000) })))).toBe('policy_memory');
    expect(engine.decide(ask({ document: GOOD })).effect).toBe('allow');
  });

  test('the maximum of 64 MiB is what stops it: with more room it allows (control)', async () => {
    const dir = await tinyPolicy(OBEDIENT);
    const question = JSON.stringify({ args: { wanted: 'memory', text: 'a'.repeat(65_000) } });
    const bounded = await startWorker(dir);
    expect(bounded.evaluate(question, 60_000).outcome).toBe('memory');
    const roomy = await startWorker(dir, { memoryBytes: 512 * 1024 * 1024 });
    expect(roomy.evaluate(question, 60_000).outcome).toBe('answer');
  });

  test('BL-133 while no worker is ready → policy_not_ready, and then decisions again', async () => {
    const { engine } = await startEngine(await tinyPolicy(OBEDIENT));
    const codes = [1, 2, 3].map(() => codeOf(engine.decide(ask({ conflict: true }))));
    expect(codes).toEqual(['policy_trap', 'policy_trap', 'policy_not_ready']);
    expect(engine.status().ready).toBe(false);
    while (!engine.status().ready) await new Promise((resolve) => setImmediate(resolve));
    expect(engine.decide(ask({ document: GOOD })).effect).toBe('allow');
  });

  test('BL-133 after close → policy_not_ready', async () => {
    const { engine } = await startEngine(SHIPPED);
    expect(engine.decide(shellInput(['make'])).effect).toBe('allow');
    await engine.close();
    expect(codeOf(engine.decide(shellInput(['make'])))).toBe('policy_not_ready');
  });

  test('input beyond the bounds → input_out_of_bounds, before any worker is asked', async () => {
    const { engine } = await startEngine(SHIPPED);
    let deep: Json = 1;
    for (let i = 0; i < 40; i += 1) deep = [deep];
    const inputs: Json[] = [
      { deep },
      { wide: Array(1001).fill(1) },
      { text: 'a'.repeat(64 * 1024) },
      { half: '\ud800' },
      { text: 'ä'.repeat(40_000) },
    ];
    for (const args of inputs) expect(codeOf(engine.decide(ask(args)))).toBe('input_out_of_bounds');
    expect(codeOf(engine.decide({ ...callInput(), callsUsed: Number.parseFloat('1e400') }))).toBe('input_out_of_bounds');
    expect(engine.decide(ask({ text: 'ä'.repeat(30_000), argv: ['x'], argv_length: 1, background: false, env: [] })).effect).toBe('allow');
  });

  test('an input that is no input at all is denied, not thrown', async () => {
    const { engine } = await startEngine(SHIPPED);
    for (const input of [undefined, null, 1, 'x', {}, { kind: 'call' }]) expect(engine.decide(input as never).effect).toBe('deny');
  });
});

async function workerOptions(dir: string): Promise<PolicyWorkerOptions> {
  const module = await WebAssembly.compile(Uint8Array.from(await readFile(join(dir, 'dist', 'policy.wasm'))));
  const clock = { now: () => 0, after: () => () => undefined };
  return { module, dataJson: '{}', entrypoint: ENTRYPOINT, memoryBytes: SAFETY.policyMemoryBytes, warmUp: [], clock };
}

async function startWorker(dir: string, change: Partial<PolicyWorkerOptions> = {}): Promise<PolicyWorker> {
  const worker = await PolicyWorker.start({ ...(await workerOptions(dir)), ...change });
  onTestFinished(() => worker.terminate());
  return worker;
}
