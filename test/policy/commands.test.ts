import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import type { CallPolicyInput } from '../../core/policy/types.ts';
import { PolicyCommands } from './support/commands.ts';
import { callInput, shellInput } from './support/inputs.ts';
import { SHIPPED } from './support/policy-dir.ts';

let commands: PolicyCommands;
beforeEach(async () => {
  commands = await PolicyCommands.make();
  const made = commands;
  onTestFinished(() => made[Symbol.asyncDispose]());
  await cp(SHIPPED, join(commands.dir, 'policies'), { recursive: true });
  await writeFile(join(commands.dir, 'outwork.yaml'), 'stateDir: state\npolicy: { dir: policies }\n');
});

async function edit(file: string, from: string | RegExp, to: string): Promise<void> {
  const path = join(commands.dir, 'policies', file);
  const text = await readFile(path, 'utf8');
  expect(text.replace(from, to)).not.toBe(text);
  await writeFile(path, text.replace(from, to));
}

const denyCurl = () => edit('data/call.yaml', /^denied_programs: .*$/m, 'denied_programs: [curl]');
const denyNothing = () => edit('data/call.yaml', /^denied_programs: .*$/m, 'denied_programs: []');
const people = async () => {
  await commands.run('user', 'add', 'ada');
  await commands.run('user', 'add', 'paula', '--role', 'user,policy');
};
const errorOf = (document: unknown) => (document as { error: { code: string } }).error.code;

describe('outwork policy check', () => {
  test('each gate is told, the bad one and those after it; exit 1', async () => {
    await edit('outwork/call/ask.rego', 'input.capability in', 'input.capabilty in');
    const { code, document } = await commands.json('policy', 'check');
    const { ok, gates } = document as { ok: boolean; gates: { gate: string; ok: boolean }[] };
    expect([code, ok]).toEqual([1, false]);
    const bad = gates.filter((gate) => !gate.ok).map(({ gate }) => gate);
    expect(bad).toEqual(expect.arrayContaining(['types and built-ins', 'tests', 'dist']));
    expect(gates.find(({ gate }) => gate === 'format')?.ok).toBe(true);
  });

  test('fits one screen', async () => {
    const { code, stdout } = await commands.run('policy', 'check');
    expect(code).toBe(0);
    expect(stdout.trim().split('\n').length).toBeLessThan(20);
  });
});

describe('outwork policy replay', () => {
  const asked = () => commands.record({ input: shellInput(['curl', 'x']), decision: { effect: 'deny' } }, { input: shellInput(['make']) });

  test('exit 1 when more is allowed than was, unless that is wanted; each flip is listed', async () => {
    await people();
    const [first] = await asked();
    const { code, document } = await commands.json('policy', 'replay', '--since', '1d');
    expect(code).toBe(1);
    expect(document).toMatchObject({ asked: 2, widens: true, stricter: [], looser: [{ of: first, before: 'deny', after: 'allow' }] });
    expect((await commands.run('policy', 'replay', '--since', '1d')).stdout).toContain('deny → allow');
    expect((await commands.run('policy', 'replay', '--since', '1d', '--allow-widening')).code).toBe(0);
  });

  test('an answer that binds less, or more, says so: the effect alone would not', async () => {
    await people();
    const bound = [{ kind: 'output_limit', bytes: 9 }] as const;
    await commands.record(
      { input: shellInput(['make']), decision: { effect: 'allow', obligations: bound } },
      { input: shellInput(['git', 'log']), decision: { effect: 'allow', obligations: [{ kind: 'effect_class', class: 'pure' }] } },
    );
    await edit('data/call.yaml', /^limits: .*$/m, 'limits: { message.post: { output_bytes: 2000 } }');
    const { stdout } = await commands.run('policy', 'replay', '--since', '1d');
    expect(stdout).toMatch(/allows more: 1\n.*\nallow, less bound/);
  });

  test('another bundle; what it denies is told apart', async () => {
    await people();
    await asked();
    await cp(join(commands.dir, 'policies'), join(commands.dir, 'draft'), { recursive: true });
    await denyCurl();
    const draft = await commands.json('policy', 'replay', '--since', '1d', '--bundle', 'draft');
    const own = await commands.json('policy', 'replay', '--since', '1d');
    expect([draft.code, own.code]).toEqual([1, 0]);
    expect(own.document).toMatchObject({ asked: 2, looser: [], stricter: [] });
  });

  test('a question recorded before calls told of their credential is asked as one without', async () => {
    await people();
    const { credential: _, recipe: __, ...older } = shellInput(['git', 'log']);
    const decision = { effect: 'allow', obligations: [{ kind: 'effect_class', class: 'pure' }] } as const;
    await commands.record({ input: older as CallPolicyInput, decision });
    const { code, document } = await commands.json('policy', 'replay', '--since', '1d');
    expect([code, document]).toMatchObject([0, { asked: 1, looser: [], stricter: [] }]);
    // Control: with a credential it is another question, and its answer another.
    const credentialed = { ...shellInput(['git', 'log']), credential: 'present', recipe: 'github' } as const;
    const [id] = await commands.record({ input: credentialed, decision });
    expect((await commands.json('policy', 'replay', '--since', '1d')).document).toMatchObject({ asked: 2, stricter: [{ of: id }] });
  });

  test('only what is recent enough', async () => {
    await people();
    await asked();
    const { document } = await commands.json('policy', 'replay', '--since', '1s');
    expect((document as { asked: number }).asked).toBeLessThanOrEqual(2);
    expect(await commands.json('policy', 'replay')).toMatchObject({ code: 2 });
  });
});

describe('outwork policy explain', () => {
  test('a recorded decision: its codes with what the rules say of themselves, and what every rule does now', async () => {
    await people();
    await denyCurl();
    const reasons = [{ code: 'program_denied', message: 'curl is a denied program.' }];
    const [id = ''] = await commands.record({ input: shellInput(['curl', 'x']), decision: { effect: 'deny', reasons } });
    const { code, document } = await commands.json('policy', 'explain', id);
    expect(code).toBe(0);
    expect(document).toMatchObject({
      effect: 'deny',
      reasons: [{ code: 'program_denied', note: { rule: 'outwork.call.deny', threat: 'unwanted-program' } }],
    });
    const { rules } = document as { rules: { code: string; fired: boolean; line?: string }[] };
    expect(
      rules
        .filter(({ fired }) => fired)
        .map((rule) => rule.code)
        .sort(),
    ).toEqual(['capability_allowed', 'program_denied']);
    expect(rules.find((rule) => rule.code === 'approval_required')?.line).toContain('data.settings.call.ask');
  });

  test('without OPA the first half, and it says so', async () => {
    await people();
    const [id = ''] = await commands.record({ input: callInput() });
    const before = { PATH: process.env.PATH, HOME: process.env.HOME, XDG_CACHE_HOME: process.env.XDG_CACHE_HOME };
    Object.assign(process.env, { PATH: '/nowhere', HOME: commands.dir, XDG_CACHE_HOME: commands.dir });
    onTestFinished(() => {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    });
    const { code, document } = await commands.json('policy', 'explain', id);
    expect(code).toBe(0);
    expect(document).toMatchObject({
      effect: 'allow',
      reasons: [{ code: 'capability_allowed' }],
      rules: null,
      note: expect.stringContaining('OPA'),
    });
  });

  test('neither a decision nor a file, both, an unknown one, and a file that is no question', async () => {
    expect((await commands.json('policy', 'explain')).code).toBe(2);
    expect((await commands.json('policy', 'explain', `dec_${'0'.repeat(26)}`)).code).toBe(2);
    expect((await commands.json('policy', 'explain', `dec_${'0'.repeat(26)}`, '--input', 'x.json')).code).toBe(2);
    await writeFile(join(commands.dir, 'x.json'), '[]');
    expect((await commands.json('policy', 'explain', '--input', 'x.json')).code).toBe(2);
  });

  const explained = async (question: string) => {
    await writeFile(join(commands.dir, 'x.json'), question);
    const { code, document } = await commands.json('policy', 'explain', '--input', 'x.json');
    return { code, ...(document as { effect: string; reasons: { code: string }[]; strays: string[]; error: { code: string } }) };
  };
  const shell = (more: string) => `{"kind": "call", "capability": "shell.exec", "caller": "executor", "args": {"argv": ["make"]}, ${more}}`;

  test('BL-129 a question that the kernel would put to no rule is answered as the kernel would', async () => {
    const big = `"argsDigest": "${'x'.repeat(70_000)}"`;
    for (const odd of ['"calls_used": 1e400', '"calls_used": 9007199254740993', '"args_digest": "\\ud800"', big]) {
      expect(await explained(shell(odd)), odd.slice(0, 40)).toMatchObject({
        ...{ code: 0, effect: 'deny', reasons: [{ code: 'input_out_of_bounds' }] },
      });
    }
    expect(await explained(shell('"calls_used": 1'))).toMatchObject({ effect: 'allow', strays: [] });
  });

  test('a field that is none is told, with what a field does not admit; one that is left out is not', async () => {
    const { code, strays } = await explained(shell('"scope": {"usr": "ada"}, "effectClass": "once", "calls_used": "1"'));
    expect(code).toBe(0);
    expect(strays).toEqual(
      ['/scope/usr is no field of the kind call', '/effectClass is no field of the kind call', '/calls_used must be integer'].sort(
        (a, b) => strays.indexOf(a) - strays.indexOf(b),
      ),
    );
    expect(await explained('{"kind": "calls"}')).toMatchObject({ code: 2, error: { code: 'invalid_argument' } });
    expect(await explained('{}')).toMatchObject({ code: 2, error: { code: 'invalid_argument' } });
  });

  test('rules that were never built: the hint says how', async () => {
    await rm(join(commands.dir, 'policies', 'dist'), { recursive: true });
    for (const command of [['test'], ['apply'], ['explain', '--input', 'x.json']]) {
      await writeFile(join(commands.dir, 'x.json'), shell('"calls_used": 1'));
      const { code, document } = await commands.json('policy', ...command);
      expect([code, document], command[0]).toMatchObject([4, { error: { code: 'policy_stale', hint: 'outwork policy build' } }]);
    }
  });
});

describe('outwork policy apply and rollback', () => {
  test('Y4 what widens needs a person with the role policy', async () => {
    await people();
    await denyCurl();
    expect((await commands.run('policy', 'apply')).code).toBe(0);
    await denyNothing();
    const plain = await commands.json('policy', 'apply');
    expect([plain.code, errorOf(plain.document)]).toEqual([4, 'policy_widening']);
    expect((await commands.json('policy', 'apply', '--allow-widening')).code).toBe(2);
    const ada = await commands.json('policy', 'apply', '--allow-widening', '--user', 'ada');
    expect([ada.code, errorOf(ada.document)]).toEqual([4, 'policy_role_required']);
    const paula = await commands.json('policy', 'apply', '--allow-widening', '--user', 'paula');
    expect(paula).toMatchObject({ code: 0, document: { changed: true } });
    const log = await commands.run('events', 'tail', '--no-follow', '--json');
    const widened = log.stdout.split('\n').filter((line) => line.includes('policy.widened'));
    expect(widened).toHaveLength(1);
    expect(JSON.parse(widened[0] ?? '')).toMatchObject({ data: { by: 'default/paula' } });
  });

  test('the first apply of a state directory is held to the shipped rules, and what is looser stays shown', async () => {
    await people();
    await edit('data/placement.yaml', 'reviewed: []', 'reviewed: [{ placement: host-loop-shell, engine: docker, wall: gvisor }]');
    const plain = await commands.json('policy', 'apply');
    expect([plain.code, errorOf(plain.document)]).toEqual([4, 'policy_widening']);
    expect((await commands.run('policy', 'apply', '--allow-widening', '--user', 'paula')).code).toBe(0);
    const { document } = await commands.json('policy', 'status');
    const { shipped } = document as { shipped: { looser: { of: string }[]; unjudged: string[] } };
    expect(shipped.looser.map(({ of }) => of)).toContainEqual(expect.stringContaining('gvisor'));
    expect((await commands.run('policy', 'status')).stdout).toMatch(/allows more than the shipped rules: \d+[\s\S]*gvisor/);
  });

  test('a change whose tests fail is not applied', async () => {
    await people();
    await commands.run('policy', 'apply');
    await edit('data/effects.yaml', 'words: [log]', 'words: [leg]');
    const { code, document } = await commands.json('policy', 'apply');
    expect([code, errorOf(document)]).toEqual([4, 'policy_test_failed']);
  });

  test('Y5 rollback is for the role policy too', async () => {
    await people();
    await commands.run('policy', 'apply');
    await denyCurl();
    await commands.run('policy', 'apply');
    const { document } = await commands.json('policy', 'status');
    const { snapshots } = document as { snapshots: { snapshot: string; current: boolean }[] };
    expect(snapshots).toHaveLength(2);
    const earlier = snapshots.find(({ current }) => !current)?.snapshot ?? '';
    expect((await commands.json('policy', 'rollback', earlier, '--user', 'ada')).code).toBe(4);
    expect(await commands.json('policy', 'rollback', earlier.slice(0, 12), '--user', 'paula')).toMatchObject({
      code: 0,
      document: { changed: true, snapshot: earlier },
    });
    expect((await commands.json('policy', 'rollback', 'deadbeef', '--user', 'paula')).code).toBe(2);
    expect((await commands.json('policy', 'rollback', '../../x', '--user', 'paula')).code).toBe(2);
  });
});

describe('outwork policy new rule', () => {
  test.each([
    ['call', 'deny'],
    ['call', 'ask'],
    ['placement', 'deny'],
    ['approval', 'deny'],
    ['egress', 'deny'],
    ['trigger', 'deny'],
    ['trigger', 'ask'],
  ])('a rule about a %s that %ss passes every gate as it is', async (kind, effect) => {
    expect((await commands.run('policy', 'new', 'rule', 'my_own', '--kind', kind, '--effect', effect)).code).toBe(0);
    await buildPolicy(join(commands.dir, 'policies'));
    const { code, stderr } = await commands.run('policy', 'test');
    expect([code, stderr]).toEqual([0, '']);
    expect((await commands.json('policy', 'new', 'rule', 'my_own', '--kind', kind, '--effect', effect)).code).toBe(2);
  });

  test.each([['Not-A-Name'], ['../x'], ['x']])('a name that is none: %s', async (name) => {
    expect((await commands.json('policy', 'new', 'rule', name)).code).toBe(2);
  });

  test('where it cannot be written, it says so', async () => {
    await rm(join(commands.dir, 'policies', 'outwork', 'trigger'), { recursive: true });
    await writeFile(join(commands.dir, 'policies', 'outwork', 'trigger'), 'a file');
    expect(await commands.json('policy', 'new', 'rule', 'my_own', '--kind', 'trigger')).toMatchObject({
      ...{ code: 2, document: { error: { code: 'invalid_argument', message: expect.stringContaining('cannot be written') } } },
    });
  });

  test.each(['placement', 'approval', 'egress'])('what a %s does not know', async (kind) => {
    expect((await commands.json('policy', 'new', 'rule', 'my_own', '--kind', kind, '--effect', 'ask')).code).toBe(2);
  });
});
