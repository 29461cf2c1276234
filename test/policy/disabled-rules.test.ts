import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadCases } from '../../adapters/policy/cases.ts';
import { findOpa, runOpa } from '../../adapters/policy/opa.ts';
import { parseRules } from '../../adapters/policy/rule-notes.ts';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { copyOfShipped, SHIPPED } from './support/policy-dir.ts';

interface Shipped {
  readonly file: string;
  readonly name: string;
  readonly from: number;
  readonly until: number;
}

const opa = await findOpa();
const files = await parseRules(opa, SHIPPED);
const rules: Shipped[] = [];
for (const { file, rules: parsed } of files) {
  const last = (await readFile(join(SHIPPED, file), 'utf8')).split('\n').length;
  parsed.forEach((rule, at) => {
    const until = (parsed[at + 1]?.from ?? last + 1) - 1;
    rules.push({ file, name: rule.isDefault ? `default ${rule.name}` : rule.name, from: rule.from, until });
  });
}

/** The text of a file with one rule that never holds: a condition that is false, a list that is empty, or a constant that is gone. */
function without(text: string, { from, until }: Shipped): string {
  const lines = text.split('\n');
  const rule = lines.slice(from - 1, until).join('\n');
  return [...lines.slice(0, from - 1), disabled(rule), ...lines.slice(until)].join('\n');
}

function disabled(rule: string): string {
  const list = /^(_\w+ := \[)/.exec(rule);
  if (list !== null) return `${list[1]}]\n`;
  const condition = /\bif\b *(\{)?/.exec(rule);
  if (condition === null) return '';
  const [head, body] = [rule.slice(0, condition.index), rule.slice(condition.index + condition[0].length)];
  if (condition[1] !== undefined) return `${head}if {\n\tfalse${body}`;
  const [line, ...rest] = body.split('\n');
  return [`${head}if {\n\tfalse\n\t${line}\n}`, ...rest].join('\n');
}

/** 0 when all pass, 2 when one fails; anything else says that the rules do not load, which would prove nothing. */
async function testsEnd(dir: string): Promise<number> {
  const data = join(dir, 'test-data.json');
  const settings = JSON.parse((await loadSettings(dir)).json) as object;
  await writeFile(data, JSON.stringify({ ...settings, cases: await loadCases(dir) }));
  return (await runOpa(opa, ['test', '--timeout', '60s', '--fail-on-empty', 'outwork', data], dir)).code;
}

test('with every rule as it is the tests pass (control)', async () => {
  expect(await testsEnd(await copyOfShipped())).toBe(0);
});

test('there is a rule for every code of the manifest', async () => {
  const { rules: notes } = JSON.parse(await readFile(join(SHIPPED, 'dist', 'manifest.json'), 'utf8')) as { rules: unknown[] };
  expect(notes.length).toBeGreaterThan(15);
  expect(rules.length).toBeGreaterThan(notes.length);
});

test.concurrent.each(rules)('$file:$from $name, disabled, fails a test', async (rule) => {
  const dir = await mkdtemp(join(tmpdir(), 'outwork-test-policy-'));
  await cp(SHIPPED, dir, { recursive: true });
  const path = join(dir, rule.file);
  const text = await readFile(path, 'utf8');
  const changed = without(text, rule);
  expect(changed).not.toBe(text);
  await writeFile(path, changed);
  expect(await testsEnd(dir)).toBe(2);
  await rm(dir, { recursive: true, force: true });
});
