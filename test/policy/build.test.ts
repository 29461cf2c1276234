import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import { hostFunctions } from '../../adapters/policy/host-functions.ts';
import { findOpa, runOpa } from '../../adapters/policy/opa.ts';
import { testPolicy } from '../../adapters/policy/test-policy.ts';
import { copyOfShipped, SHIPPED, temporaryDir, tinyPolicy } from './support/policy-dir.ts';

describe('a build gives the same bytes wherever it happens', () => {
  test('the committed module and manifest are what the committed rules give', async () => {
    const dir = await copyOfShipped();
    await rm(join(dir, 'dist'), { recursive: true });
    await buildPolicy(dir);
    for (const file of ['policy.wasm', 'manifest.json', 'data.json']) {
      expect((await readFile(join(dir, 'dist', file))).equals(await readFile(join(SHIPPED, 'dist', file)))).toBe(true);
    }
  });

  test('the committed module needs no function of its host', async () => {
    const module = await WebAssembly.compile(Uint8Array.from(await readFile(join(SHIPPED, 'dist', 'policy.wasm'))));
    expect(hostFunctions(module)).toEqual([]);
  });

  test('a module that needs one is told by its name (control)', async () => {
    const dir = await temporaryDir();
    await writeFile(join(dir, 'p.rego'), 'package outwork\n\ndecision := sprintf("%d", [input.x])\n');
    const opa = await findOpa();
    const built = await runOpa(opa, ['build', '-t', 'wasm', '-e', 'outwork/decision', '-o', 'b.tar.gz', 'p.rego'], dir);
    expect(built.code).toBe(0);
    const { execFileSync } = await import('node:child_process');
    const wasm = execFileSync('tar', ['-xOzf', join(dir, 'b.tar.gz'), '/policy.wasm'], { stdio: ['ignore', 'pipe', 'ignore'] });
    expect(hostFunctions(await WebAssembly.compile(Uint8Array.from(wasm)))).toEqual(['sprintf']);
  });
});

describe('what cannot be built', () => {
  test('a rule that does not parse is told by file, line and column', async () => {
    const dir = await copyOfShipped();
    await appendFile(join(dir, 'outwork', 'call', 'ask.rego'), '\nask contains x if {\n');
    const lines = (await readFile(join(dir, 'outwork', 'call', 'ask.rego'), 'utf8')).split('\n').length;
    await expect(buildPolicy(dir)).rejects.toMatchObject({
      code: 'policy_build_failed',
      message: expect.stringMatching(new RegExp(`^opa parse: outwork/call/ask\\.rego:${lines}:\\d+: unexpected eof token$`)),
    });
  });

  test('a place that cannot be written is named', async () => {
    const dir = await copyOfShipped();
    await rm(join(dir, 'dist'), { recursive: true });
    await writeFile(join(dir, 'dist'), 'a file');
    await expect(buildPolicy(dir)).rejects.toMatchObject({
      code: 'policy_build_failed',
      message: expect.stringContaining(`${join(dir, 'dist')} cannot be written: `),
    });
  });
});

describe('BL-127 a built-in that is not part of the module refuses the build', () => {
  test('those that are admitted build (control)', async () => {
    await tinyPolicy('decision := {"a": regex.match("a+", input.x), "b": concat("", [lower(input.x)]), "c": object.union(input, {})}');
  });

  test.each([
    'http.send({"method": "get", "url": input.x})',
    'io.jwt.decode(input.x)',
    'crypto.x509.parse_certificates(input.x)',
    'crypto.sha256(input.x)',
    'glob.quote_meta(input.x)',
    'net.cidr_expand(input.x)',
    'net.cidr_merge(input.x)',
    'net.cidr_contains_matches(input.x, input.y)',
    'net.lookup_ip_addr(input.x)',
    'regex.find_n("a", input.x, 1)',
    'regex.globs_match(input.x, input.y)',
    'regex.split("a", input.x)',
    'regex.replace(input.x, "a", "b")',
    'json.patch(input.x, input.y)',
    'json.is_valid(input.x)',
    'yaml.is_valid(input.x)',
    'yaml.unmarshal(input.x)',
    'yaml.marshal(input.x)',
    'sprintf("%d", [input.x])',
    'rand.intn("a", 5)',
    'indexof_n(input.x, "a")',
    'graphql.is_valid(input.x, input.y)',
    'time.now_ns()',
    'time.parse_rfc3339_ns(input.x)',
    'uuid.rfc4122(input.x)',
    'opa.runtime()',
    'trace(input.x)',
  ])('%s', async (expression) => {
    const dir = await temporaryDir();
    await mkdir(join(dir, 'outwork'));
    await writeFile(join(dir, 'outwork', 'decision.rego'), `package outwork\n\ndecision := ${expression}\n`);
    const name = expression.slice(0, expression.indexOf('('));
    await expect(buildPolicy(dir)).rejects.toMatchObject({
      code: 'policy_build_failed',
      message: expect.stringContaining(`undefined function ${name}`),
    });
  });

  test('a refused build leaves the module that was there', async () => {
    const dir = await copyOfShipped();
    const before = await readFile(join(dir, 'dist', 'policy.wasm'));
    await writeFile(join(dir, 'outwork', 'call', 'extra.rego'), 'package outwork.call\n\n_now := time.now_ns()\n');
    await expect(buildPolicy(dir)).rejects.toMatchObject({ code: 'policy_build_failed' });
    expect((await readFile(join(dir, 'dist', 'policy.wasm'))).equals(before)).toBe(true);
  });
});

describe('the gates of the rules', () => {
  test('the shipped rules pass them all', async () => {
    const report = await testPolicy(SHIPPED);
    expect(report.coverage).toBe(100);
    expect(report.tests).toBeGreaterThan(20);
  });

  const EXTRA = ['outwork', 'call', 'extra.rego'];
  const METADATA = '# METADATA\n# title: Extra\n# custom:\n#   code: extra\n#   threat: none\n#   solution: none\n';

  test.each([
    ['format', 'package outwork.call\n\n_x  :=  1\n', 'opa fmt'],
    ['strictness', 'package outwork.call\n\n_x if y := 1\n', 'opa check'],
    ['a name that the input does not have', 'package outwork.call\n\n_x := input.capabilty\n', 'opa check'],
    ['a name that the data does not have', 'package outwork.call\n\n_x := data.settings.call.denied\n', 'opa check'],
    ['a built-in that is not admitted', 'package outwork.call\n\n_x := time.now_ns()\n', 'opa check'],
    ['a public rule without METADATA', 'package outwork.call\n\nextra := 1\n', 'conventions'],
    ['a public rule that says half', `package outwork.call\n\n${METADATA.replace('threat', 'thread')}extra := 1\n`, 'conventions'],
    ['a code used twice', `package outwork.call\n\n${METADATA.replace('code: extra', 'code: program_denied')}extra := 1\n`, 'conventions'],
    ['a rule that no test reaches', 'package outwork.call\n\n_x := 1 if input.caller == "nobody"\n', 'coverage'],
  ])('refuse %s', async (_, rule, gate) => {
    const dir = await copyOfShipped();
    await writeFile(join(dir, ...EXTRA), rule);
    await expect(testPolicy(dir)).rejects.toMatchObject({ code: 'policy_test_failed', message: expect.stringMatching(`^${gate}`) });
  });

  test('refuse a test that fails', async () => {
    const dir = await copyOfShipped();
    await writeFile(join(dir, 'outwork', 'call', 'extra_test.rego'), 'package outwork.call_test\n\ntest_fails if 1 == 2\n');
    await expect(testPolicy(dir)).rejects.toMatchObject({ code: 'policy_test_failed', message: expect.stringMatching('^opa test') });
  });

  test('refuse rules that were not built', async () => {
    const dir = await copyOfShipped();
    await appendFile(join(dir, 'outwork', 'call', 'ask.rego'), '\n# A remark.\n');
    await expect(testPolicy(dir)).rejects.toMatchObject({ code: 'policy_stale' });
  });
});
