import { appendFile, mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import { loadSite } from '../../adapters/policy/site.ts';
import { checkPolicy } from '../../adapters/policy/test-policy.ts';
import type { PolicyKind } from '../../core/policy/contracts.ts';
import { ENTRY, egressInput, triggerInput } from './support/egress.ts';
import { startEngine } from './support/engine.ts';
import { callInput, placementInput, plainInput, shellInput } from './support/inputs.ts';
import { copyOfShipped, temporaryDir } from './support/policy-dir.ts';
import { REASON, siteRule, siteWith } from './support/site.ts';

const PUSH = 'input.args.argv == ["git", "push"]';
const GIT_PUSH = shellInput(['git', 'push']);

async function withRule(effect: string, value: string, condition: string, kind: PolicyKind = 'call', data: Record<string, string> = {}) {
  const dir = await copyOfShipped();
  for (const [file, text] of Object.entries(data)) await writeFile(join(dir, 'data', file), text);
  const siteDir = await siteWith(dir, { [`site/${kind}/rule.rego`]: siteRule(effect, value, condition, kind) });
  return { dir, siteDir, ...(await startEngine(dir, { siteDir })) };
}

/** Lists under which the requests and triggers below are allowed. */
const LISTS = {
  'egress.yaml': `hosts: { example.com: [${ENTRY}] }\naddresses: {}\ndenied: {}\n`,
  'trigger.yaml': 'allowed: { create: [product], delete: [product] }\nask: []\ndenied: []\n',
};

describe('rules of a site narrow what the shipped ones decide', () => {
  test('they deny', async () => {
    const { engine } = await withRule('deny', REASON, PUSH);
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'deny', reasons: [{ code: 'of_the_site' }] });
    expect(engine.decide(shellInput(['make'])).effect).toBe('allow');
  });

  test('they ask', async () => {
    const { engine } = await withRule('ask', REASON, PUSH);
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'ask', reasons: [{ code: 'of_the_site' }] });
  });

  test('they tighten', async () => {
    const { engine } = await withRule('obligations', '{"kind": "output_limit", "bytes": 9}', PUSH);
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'allow', obligations: [{ kind: 'output_limit', bytes: 9 }] });
  });

  test.each([
    ['egress', egressInput()],
    ['trigger', triggerInput()],
  ] as const)('they deny a question of the kind %s', async (kind, question) => {
    const { engine } = await withRule('deny', REASON, 'input.actor.user == "ada"', kind, LISTS);
    expect(engine.decide(question)).toMatchObject({ effect: 'deny', reasons: [{ code: 'of_the_site' }] });
    expect(engine.decide({ ...question, actor: { user: 'bob', roles: [] }, scope: { ...question.scope, user: 'bob' } }).effect).toBe(
      'allow',
    );
  });

  test('they ask about a trigger', async () => {
    const { engine } = await withRule('ask', REASON, 'input.source == "schedule"', 'trigger', LISTS);
    expect(engine.decide(triggerInput())).toMatchObject({ effect: 'ask', reasons: [{ code: 'of_the_site' }] });
    expect(engine.decide(triggerInput({ source: 'webhook' })).effect).toBe('allow');
  });

  test.each([
    ['egress', egressInput()],
    ['placement', placementInput()],
  ] as const)('where nothing can wait, what they ask about is refused, and the reason says so: %s', async (kind, question) => {
    const { engine } = await withRule('ask', REASON, 'input.actor.user == "ada"', kind, LISTS);
    expect(engine.decide(question)).toMatchObject({
      effect: 'deny',
      reasons: [{ code: 'ask_is_deny', message: expect.stringMatching(/^The site says so\. \(of_the_site; .*waits for an approval/) }],
    });
    expect(engine.decide({ ...question, actor: { user: 'bob', roles: [] } }).effect).toBe('allow');
  });

  test('without them nothing is denied (control)', async () => {
    const { engine } = await startEngine(await copyOfShipped());
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'allow', obligations: [] });
  });
});

describe('the shipped tests beside rules of a site', () => {
  const CAT = 'input.args.argv[0] == "cat"';
  const TESTS = `package site.call_test

import data.site.call

test_fail_cat if count(call.deny) == 1 with input as {"args": {"argv": ["cat"]}}

test_success_other if count(call.deny) == 0 with input as {"args": {"argv": ["make"]}}
`;
  const site = (dir: string, more: Record<string, string> = {}) =>
    siteWith(dir, { 'site/call/rule.rego': siteRule('deny', REASON, CAT), 'site/call/rule_test.rego': TESTS, ...more });

  test('a rule may deny what a shipped row allows: every gate passes, and a person can apply it', async () => {
    const dir = await copyOfShipped();
    const siteDir = await site(dir);
    const failed = (await checkPolicy({ dir, siteDir })).filter(({ ok }) => !ok);
    expect(failed.map(({ gate, detail }) => `${gate}: ${detail}`)).toEqual([]);
  });

  test('rows of its own are exact: a wrong one is a fault of both engines, told by its name alone', async () => {
    const dir = await copyOfShipped();
    const rows =
      'cases:\n  call:\n    - { note: cat is ours, shell: [cat, x], effect: allow, codes: [capability_allowed], lowered: pure }\n';
    const siteDir = await site(dir, { 'cases/own.yaml': rows });
    const failed = (await checkPolicy({ dir, siteDir })).filter(({ ok }) => !ok);
    expect(failed.map(({ gate }) => gate)).toEqual(['tests', 'coverage', 'compiled cases']);
    expect(failed[0]?.detail).toMatch(
      /^opa test: 1 of 3 fail\ndata\.outwork_test\.test_cases \(outwork\/cases_test\.rego:\d+\)\n {2}call: cat is ours$/,
    );
    expect(failed[2]?.detail).toBe('cases: call: cat is ours: wanted allow (capability_allowed), got deny (of_the_site)');
  });

  test('a rule of the site that no test reaches is named (control: with its tests none is)', async () => {
    const dir = await copyOfShipped();
    const siteDir = await site(dir, {
      'site/call/rule_test.rego': TESTS.replace('argv": ["cat"]', 'argv": ["dog"]').replace('== 1', '== 0'),
    });
    const failed = (await checkPolicy({ dir, siteDir })).filter(({ ok }) => !ok);
    expect(failed.map(({ gate, detail }) => `${gate}: ${detail}`)).toEqual([expect.stringMatching(/^coverage: .*rule\.rego/)]);
  });
});

describe('data of a site that is not whole', () => {
  test.each([
    ['no schema', { 'data/words.yaml': 'words: []\n' }, 'data/words.yaml: needs both the file and schemas/settings/words.json'],
    ['a schema that is no JSON', { 'data/words.yaml': 'words: []\n', 'schemas/settings/words.json': '{' }, 'schemas/settings/words.json: '],
    ['a schema that is none', { 'data/words.yaml': 'words: []\n', 'schemas/settings/words.json': '{"type": 5}' }, 'settings/words.json: '],
  ])('%s: the gate says so, and the others are told too', async (_, files, fault) => {
    const dir = await copyOfShipped();
    const siteDir = await siteWith(dir, { 'site/call/rule.rego': siteRule('deny', REASON, PUSH) });
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(siteDir, path)), { recursive: true });
      await writeFile(join(siteDir, path), text);
    }
    const gates = await checkPolicy({ dir, siteDir });
    expect(gates.find(({ gate }) => gate === 'data')).toMatchObject({ ok: false, detail: expect.stringContaining(fault) });
    expect(gates.at(-1)).toMatchObject({ gate: 'signature', ok: true });
    await expect(startEngine(dir, { siteDir })).rejects.toMatchObject({ code: 'policy_malformed' });
  });
});

describe('rules of a site widen nothing', () => {
  test('an obligation that would loosen is a deny', async () => {
    const { engine } = await withRule('obligations', '{"kind": "effect_class", "class": "pure"}', PUSH);
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'deny', reasons: [{ code: 'site_obligation_refused' }] });
  });

  test('a reason that is none is a deny, not an allow', async () => {
    const { engine } = await withRule('deny', '"just because"', PUSH);
    expect(engine.decide(GIT_PUSH)).toMatchObject({ effect: 'deny', reasons: [{ code: 'policy_malformed' }] });
  });

  test.each([
    ['an allow', siteRule('allow', REASON, 'true'), 'allow is not deny, ask or obligations'],
    [
      'a rule in a shipped package',
      siteRule('allow', REASON, 'true').replace('package site.call', 'package outwork.call'),
      'its folder says',
    ],
    [
      'an obligation that nobody would hear',
      siteRule('obligations', '{"kind": "audit"}', 'true', 'egress'),
      'obligations are for calls',
      'site/egress/rule.rego',
    ],
    ['a rule in another package', 'package other\n\nx := 1\n', 'its folder says'],
    ['another decision', 'package outwork\n\ndecision := {"effect": "allow"}\n', 'its folder says'],
  ])('%s does not build', async (_, text, message, file = 'site/call/rule.rego') => {
    const built = copyOfShipped().then((dir) => siteWith(dir, { [file]: text }));
    await expect(built).rejects.toMatchObject({ code: 'policy_build_failed', message: expect.stringContaining(message) });
  });

  test('data of a site is read under its own name and cannot stand in for rules', async () => {
    const dir = await copyOfShipped();
    const schema = '{"type": "object", "properties": {"words": {"type": "array"}}, "required": ["words"], "additionalProperties": false}';
    const siteDir = await siteWith(dir, {
      'site/call/rule.rego': siteRule('deny', REASON, 'input.args.argv[0] in data.site_settings.words.words'),
      'data/words.yaml': 'words: [git]\n',
      'schemas/settings/words.json': schema,
    });
    const { engine } = await startEngine(dir, { siteDir });
    expect(engine.decide(GIT_PUSH).effect).toBe('deny');
    expect(engine.decide(plainInput('fs.write', { caller: 'operator' as never, capability: 'sandbox.manage' as never })).effect).toBe(
      'deny',
    );
    await writeFile(join(siteDir, 'data', 'words.yaml'), 'other: 1\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain('words.yaml');
    expect(engine.decide(GIT_PUSH).effect).toBe('deny');
  });
});

describe('rules of a site and the module belong together', () => {
  test('a rule that was changed and not built is not loaded; built, it is', async () => {
    const { dir, siteDir, engine } = await withRule('deny', REASON, PUSH);
    await appendFile(join(siteDir, 'site', 'call', 'rule.rego'), '\n_more := 1\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain('was built from other rules');
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect(engine.status().reloadFault).toBeUndefined();
  });

  test('taking a rule away allows what it denied: that is widening', async () => {
    const { dir, siteDir, engine } = await withRule('deny', REASON, 'input.capability == "fs.write"');
    await writeFile(join(siteDir, 'site', 'call', 'rule.rego'), siteRule('deny', REASON, 'input.capability == "never"'));
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect(engine.status().reloadFault).toContain('allows more');
    expect(engine.decide(callInput({ capability: 'fs.write' })).effect).toBe('deny');
  });
});

test('files of the site that cannot be read are one error of the load: no rejection is left over, which would end the kernel', async () => {
  const siteDir = await temporaryDir();
  const files = ['site/call/rule.rego', 'schemas/settings/words.json'].map((path) => join(siteDir, path));
  for (const file of files) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, '');
    // Beyond what Node reads at once, whoever asks: root reads what no permission admits.
    await truncate(file, 3 * 2 ** 30);
  }
  const left: unknown[] = [];
  const note = (reason: unknown) => void left.push(reason);
  process.on('unhandledRejection', note);
  await expect(loadSite(siteDir)).rejects.toMatchObject({ code: 'ERR_FS_FILE_TOO_LARGE' });
  // By then the other read has ended too.
  for (const file of files) await readFile(file).catch(() => undefined);
  await new Promise((done) => setImmediate(done));
  process.off('unhandledRejection', note);
  expect(left).toEqual([]);
});
