import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadPolicy } from '@open-policy-agent/opa-wasm';
import { describe, expect, test } from 'vitest';
import { overlay } from '../../adapters/policy/cases.ts';
import { egressProbes } from '../../adapters/policy/egress-probes.ts';
import { findOpa, runOpa } from '../../adapters/policy/opa.ts';
import { probeInputs } from '../../adapters/policy/probe-inputs.ts';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { readVerdict } from '../../adapters/policy/verdict.ts';
import type { Json } from '../../core/json.ts';
import { canonicalJson } from '../../core/json.ts';
import { CASES, PLAIN_CASES } from './support/cases.ts';
import { startEngine } from './support/engine.ts';
import { callInput } from './support/inputs.ts';
import { SHIPPED, temporaryDir, tinyPolicy } from './support/policy-dir.ts';

/** Answers of OPA's own interpreter to the same questions, in one run. */
async function interpreted(dir: string, dataJson: string, inputs: readonly unknown[]): Promise<readonly unknown[]> {
  const work = await temporaryDir();
  const [data, input] = [join(work, 'data.json'), join(work, 'input.json')];
  await Promise.all([writeFile(data, dataJson), writeFile(input, JSON.stringify({ inputs }))]);
  const query = '[answer | some one in input.inputs; answer := [x | x := data.outwork.decision with input as one]]';
  const { stdout } = await runOpa(await findOpa(), ['eval', '-f', 'raw', '-d', 'outwork', '-d', data, '-i', input, query], dir);
  return JSON.parse(stdout) as unknown[];
}

async function compiled(dir: string, dataJson: string, inputs: readonly unknown[]): Promise<readonly unknown[]> {
  const policy = await loadPolicy(await readFile(join(dir, 'dist', 'policy.wasm')));
  policy.setData(JSON.parse(dataJson) as object);
  return inputs.map((input) => (policy.evaluate(input) as { result: unknown }[]).map(({ result }) => result));
}

const verdicts = (answers: readonly unknown[]) =>
  answers.map((answer) => readVerdict(JSON.stringify((answer as unknown[]).map((result) => ({ result })))));

describe('the compiled policy and the interpreter give the same answers', () => {
  test('on more than 200 fixed questions to the shipped policy', async () => {
    const { json } = await loadSettings(SHIPPED);
    const { settings } = JSON.parse(json) as { settings: unknown };
    const { probes } = probeInputs({}, settings);
    const inputs = [...PLAIN_CASES, ...probes].map(({ input }) => input);
    expect(new Set(inputs.map(canonicalJson)).size).toBeGreaterThan(200);
    const fromOpa = verdicts(await interpreted(SHIPPED, json, inputs));
    expect(fromOpa).toEqual(verdicts(await compiled(SHIPPED, json, inputs)));
    expect(fromOpa.slice(0, PLAIN_CASES.length).map(({ effect }) => effect)).toEqual(PLAIN_CASES.map(({ effect }) => effect));
  });

  test('on every row that brings its own data, and on requests about each list in it', async () => {
    const { settings } = JSON.parse((await loadSettings(SHIPPED)).json) as { settings: Record<string, unknown> };
    const lists = new Map<string, unknown[]>();
    for (const { settings: laid, input } of CASES.filter((row) => row.settings !== undefined)) {
      const json = canonicalJson({ settings: overlay(settings, laid ?? {}) });
      lists.set(json, [...(lists.get(json) ?? []), input]);
    }
    let asked = 0;
    for (const [json, rows] of lists) {
      const inputs = [...rows, ...egressProbes({}, (JSON.parse(json) as { settings: unknown }).settings).probes.map(({ input }) => input)];
      expect(verdicts(await interpreted(SHIPPED, json, inputs))).toEqual(verdicts(await compiled(SHIPPED, json, inputs)));
      asked += inputs.length;
    }
    expect(asked).toBeGreaterThan(100);
  });

  const CORPUS: readonly Json[] = [
    { a: 1, b: 1.0, text: '1234567890' },
    { a: 0, b: -0, text: '-0' },
    { a: 0.1, b: 0.3, text: '0.3' },
    { a: Number.MAX_SAFE_INTEGER, b: Number.MAX_SAFE_INTEGER - 1, text: '9007199254740991' },
    { a: -1.5, b: 3, text: '1e3' },
    { a: '9007199254740993', b: '9007199254740992', text: 'x' },
    { a: true, b: 1, text: '' },
    { a: null, b: false, text: '9007199254740993' },
    { a: [1, 2], b: [1, 2, 3], text: 'äöü😀' },
    { a: { x: 1 }, b: { x: 1, y: 2 }, text: 'a,b,c' },
  ];

  test('BL-129 on numbers, BL-131 on the order of sets', async () => {
    const dir = await tinyPolicy(`
decision := {
	"equal": input.a == input.b,
	"less": input.a < input.b,
	"number": [n | n := to_number(input.text)],
	"sum": [n | is_number(input.a); is_number(input.b); n := input.a + input.b],
	"same": to_number("1234567890") == 1234567890,
	"joined": concat(",", sort({"3", "2", "1"})),
	"first": sort({"c", "b", "a", input.text})[0],
	"sorted": sort([input.b, input.a]),
	"characters": [count(input.text), substring(input.text, 0, 4), upper(input.text)],
	"parts": [split(input.text, ","), trim_left(input.text, "a"), trim_left(input.text, "")],
	"found": regex.find_all_string_submatch_n("[^,]+", input.text, -1),
}
`);
    expect(canonicalJson(await compiled(dir, '{}', CORPUS))).toBe(canonicalJson(await interpreted(dir, '{}', CORPUS)));
  });

  test('BL-131 an unsorted set is where they differ; sorted first, as above, it is not', async () => {
    const dir = await tinyPolicy('decision := [concat(",", {"3", "2", "1"}), [x | some x in {"c", "b", "a"}]]');
    expect(canonicalJson(await compiled(dir, '{}', [{}]))).not.toBe(canonicalJson(await interpreted(dir, '{}', [{}])));
  });

  /** Both differ in the direction of harm: the compiled `to_number` calls this infinite, or gives a number that is none. */
  test.each(['1e400', '007', '.5', '5.', '1e'])(
    'BL-129 to_number("%s") is where they differ; a decision that holds the number is denied',
    async (text) => {
      const dir = await tinyPolicy(`
decision := {
	"effect": "allow",
	"reasons": [{"code": "number", "message": "It is a number."}],
	"obligations": [{"kind": "reserve", "wall_ms": to_number(input.args.text)}],
}
`);
      const { engine } = await startEngine(dir);
      expect(engine.decide(callInput({ args: { text } })).effect).toBe('deny');
      expect(engine.decide(callInput({ args: { text: '400' } })).effect).toBe('allow');
    },
  );
});
