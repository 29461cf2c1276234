import { generateKeyPairSync } from 'node:crypto';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { signRelease } from '../../adapters/policy/release.ts';
import type { ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import type { Flip } from '../../core/policy/control.ts';
import type { CallPolicyInput, Decision } from '../../core/policy/types.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import { startEngine, type TestEngine } from './support/engine.ts';
import { shellInput } from './support/inputs.ts';
import { copyOfShipped, temporaryDir } from './support/policy-dir.ts';

type Edit = readonly [file: string, from: string | RegExp, to: string];

async function edit(dir: string, ...edits: readonly Edit[]): Promise<void> {
  for (const [file, from, to] of edits) {
    const path = join(dir, 'data', file);
    const text = await readFile(path, 'utf8');
    const next = text.replace(from, to);
    expect(next).not.toBe(text);
    await writeFile(path, next);
  }
}

const DENY_CURL: Edit = ['call.yaml', /^denied_programs: .*$/m, 'denied_programs: [curl]'];
const DENY_NOTHING: Edit = ['call.yaml', /^denied_programs: .*$/m, 'denied_programs: []'];
const CURL = shellInput(['curl']);

const types = ({ events }: TestEngine) => events.map(({ type }) => type);

async function refused(engine: ReloadingPolicyEngine, code: string): Promise<void> {
  const before = engine.status().snapshot;
  await expect(engine.apply({})).rejects.toMatchObject({ code });
  await engine.reload();
  expect(engine.status().snapshot).toBe(before);
  expect(engine.status().reloadFault).toEqual(expect.any(String));
}

describe('Y4 what narrows is live at once, what widens waits for a person', () => {
  test('a denied program, and its release', async () => {
    const dir = await copyOfShipped();
    const started = await startEngine(dir);
    const { engine, events } = started;
    await edit(dir, DENY_CURL);
    await engine.reload();
    expect(engine.decide(CURL).effect).toBe('deny');
    await edit(dir, DENY_NOTHING);
    await refused(engine, 'policy_widening');
    expect(engine.decide(CURL).effect).toBe('deny');
    const change = await engine.apply({ widenBy: 'default/paula' });
    expect(engine.decide(CURL).effect).toBe('allow');
    expect(change.changed).toBe(true);
    expect(change.flips.filter(({ looser }) => looser).map(({ of }) => of)).toContain('shell.exec: curl');
    expect(engine.status().reloadFault).toBeUndefined();
    expect(types(started)).toEqual(['policy.loaded', 'policy.loaded', 'policy.reload_failed', 'policy.loaded', 'policy.widened']);
    expect(events.at(-1)?.data).toMatchObject({ by: 'default/paula', to: change.snapshot, flips: expect.any(Number) });
  });

  test.each<[string, ...Edit[]]>([
    ['a capability for one caller more', ['call.yaml', 'message.post: [executor]', 'message.post: [executor, operator]']],
    ['a launcher that is none any more', ['call.yaml', '  - xargs\n', '']],
    ['a limit that is gone', ['call.yaml', 'limits: { fs.read: { output_bytes: 2000 } }', 'limits: {}']],
    ['a limit that is higher', ['call.yaml', 'output_bytes: 2000', 'output_bytes: 3000']],
    ['an ask that is gone', ['call.yaml', 'ask: [message.post]', 'ask: []']],
    [
      'a program that may run twice',
      [
        'effects.yaml',
        'programs:\n',
        'programs:\n  make:\n    - { words: [], class: pure, flags: "", options: [], prefixes: [], operands: true }\n',
      ],
    ],
    ['an option of such a program', ['effects.yaml', 'flags: LP, options: []', 'flags: LP, options: [--fresh]']],
    ['a variable that such a program may see', ['effects.yaml', 'TERM, TZ]', 'TERM, TZ, PAGER]']],
    ['a weaker promise', ['effects.yaml', 'class: idempotent', 'class: pure']],
    [
      'a reviewed combination',
      ['placement.yaml', 'reviewed: []', 'reviewed: [{ placement: host-loop-shell, engine: docker, wall: gvisor }]'],
    ],
    ['a harness of our own', ['placement.yaml', 'own_harnesses: [native, scripted]', 'own_harnesses: [native, scripted, acme]']],
    [
      'a placement more',
      [
        'placement.yaml',
        'allowed: [disposable-per-run, host-loop-shell]',
        'allowed: [disposable-per-run, host-loop-shell, persistent-per-user]',
      ],
    ],
    ['balanced', ['strictness.yaml', 'level: strict', 'level: balanced']],
  ])('nobody has asked yet, and still it is seen: %s', async (_, ...edits) => {
    const dir = await copyOfShipped();
    await edit(
      dir,
      ['call.yaml', 'limits: {}', 'limits: { fs.read: { output_bytes: 2000 } }'],
      ['call.yaml', 'ask: []', 'ask: [message.post]'],
      ['call.yaml', 'denied_programs: []', 'denied_programs: [nc]'],
      ['placement.yaml', /^allowed: .*$/m, 'allowed: [disposable-per-run, host-loop-shell]'],
    );
    const { engine } = await startEngine(dir);
    await edit(dir, ...edits);
    await refused(engine, 'policy_widening');
    expect((await engine.apply({ widenBy: 'paula' })).flips.some(({ looser }) => looser)).toBe(true);
  });

  test('a variable is seen whatever else the data says of the programs that may see it', async () => {
    const dir = await copyOfShipped();
    await edit(dir, ['call.yaml', 'denied_programs: []', 'denied_programs: [ls]']);
    const { engine } = await startEngine(dir);
    await edit(dir, ['effects.yaml', 'TERM, TZ]', 'TERM, TZ, PAGER]']);
    await refused(engine, 'policy_widening');
  });

  test('a list of programs too long to ask about waits for a person; many denials more do not', async () => {
    const dir = await copyOfShipped();
    const { engine } = await startEngine(dir);
    const many = Array.from({ length: 500 }, (_, at) => `tool${at}`);
    await edit(dir, ['call.yaml', 'denied_programs: []', `denied_programs: [${many.join(', ')}, zz]`]);
    await engine.reload();
    expect(engine.decide(shellInput(['zz']))).toMatchObject({ effect: 'deny' });
    // Of denied programs nothing is promised that could be seen: only the one behind them all would run twice unseen.
    const rows = [...many, 'last'].map(
      (name) => `  ${name}:\n    - { words: [], class: pure, flags: "", options: [], prefixes: [], operands: true }\n`,
    );
    await edit(dir, ['effects.yaml', 'programs:\n', `programs:\n${rows.join('')}`]);
    await refused(engine, 'policy_widening');
    expect(engine.status().reloadFault).toContain('data/effects.yaml programs');
  });

  const recorded = (id: string, input: CallPolicyInput, decision: Decision): DecisionRow => {
    return { id, run: 'run_1', kind: 'call', capability: 'shell.exec', inputDigest: 'd', input, decision, atMs: 1 };
  };

  test('recorded questions are asked too, under what runs now', async () => {
    const dir = await copyOfShipped();
    await edit(dir, ['call.yaml', 'denied_programs: []', 'denied_programs: [rust-analyzer]']);
    const rows: DecisionRow[] = [];
    const { engine } = await startEngine(dir, { recent: async () => rows });
    const question = shellInput(['sh', '-c', 'echo hi; rust-analyzer --version']);
    rows.push(recorded('dec_1', question, engine.decide(question)));
    await edit(dir, ['call.yaml', /^launchers:\n(?: {2}- .*\n)+/m, 'launchers: []\n']);
    const { flips } = await engine.apply({ widenBy: 'paula' });
    expect(flips.find(({ of }) => of === 'dec_1')).toEqual<Flip>({
      of: 'dec_1',
      kind: 'call',
      before: 'deny',
      after: 'allow',
      looser: true,
      codes: ['capability_allowed'],
      about: 'shell.exec sh -c echo hi; rust-analyzer --version',
    });
  });

  test('what a decision was recorded as counts, when the same snapshot still runs', async () => {
    const dir = await copyOfShipped();
    const rows: DecisionRow[] = [];
    const { engine } = await startEngine(dir, { recent: async () => rows });
    const question = shellInput(['true']);
    rows.push(recorded('dec_1', question, { ...engine.decide(question), effect: 'deny' }));
    await edit(dir, DENY_CURL);
    await expect(engine.apply({})).rejects.toMatchObject({ code: 'policy_widening', message: expect.stringContaining('dec_1') });
  });
});

describe('gates that no person opens', () => {
  test('the floor of the table', async () => {
    const dir = await copyOfShipped();
    const { engine } = await startEngine(dir);
    await edit(dir, ['placement.yaml', 'own_harnesses: [native, scripted]', 'own_harnesses: [native, scripted, "native "]']);
    await refused(engine, 'policy_floor');
    await expect(engine.apply({ widenBy: 'paula' })).rejects.toMatchObject({ code: 'policy_floor' });
  });

  test('the floor at the first load', async () => {
    const dir = await copyOfShipped();
    await edit(dir, ['placement.yaml', 'own_harnesses: [native, scripted]', 'own_harnesses: [native, scripted, "native "]']);
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_floor' });
  });

  test('a version that falls', async () => {
    const dir = await copyOfShipped();
    await edit(dir, ['release.yaml', 'version: 1', 'version: 7']);
    const { engine } = await startEngine(dir);
    await edit(dir, ['release.yaml', 'version: 7', 'version: 6']);
    await refused(engine, 'policy_version');
    await edit(dir, ['release.yaml', 'version: 6', 'version: 7'], DENY_CURL);
    await engine.reload();
    expect(engine.status()).toMatchObject({ reloadFault: undefined, digests: { version: 7 } });
  });

  test.each([
    ['a file too many in data', 'data/notes.txt', 'does not belong there'],
    ['a file too many in dist', 'dist/policy.wasm.bak', 'does not belong there'],
    ['a rule that is none', 'outwork/call/allow.rego.orig', 'does not belong there'],
    ['a case that is none', 'cases/call.json', 'does not belong there'],
  ])('the exact file set: %s', async (_, file, message) => {
    const dir = await copyOfShipped();
    const { engine } = await startEngine(dir);
    await writeFile(join(dir, file), 'x\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain(message);
    await rm(join(dir, file));
    await engine.reload();
    expect(engine.status().reloadFault).toBeUndefined();
  });

  test('the exact file set: no link leads out of it', async () => {
    const dir = await copyOfShipped();
    await rm(join(dir, 'data', 'call.yaml'));
    await symlink('/dev/null', join(dir, 'data', 'call.yaml'));
    await expect(startEngine(dir)).rejects.toMatchObject({
      code: 'policy_malformed',
      message: expect.stringContaining('not a regular file'),
    });
  });

  test('the tests, when a person applies', async () => {
    const dir = await copyOfShipped();
    const fail = async () => {
      throw new Error('a test failed');
    };
    const { engine } = await startEngine(dir, { test: fail });
    await edit(dir, DENY_CURL);
    await expect(engine.apply({})).rejects.toThrow('a test failed');
    expect(engine.decide(CURL).effect).toBe('allow');
  });
});

describe('a signature, where one is wanted', () => {
  async function keys() {
    const dir = await temporaryDir();
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const files = { publicKey: join(dir, 'public.pem'), privateKey: join(dir, 'private.pem') };
    await writeFile(files.publicKey, publicKey.export({ type: 'spki', format: 'pem' }));
    await writeFile(files.privateKey, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return files;
  }

  test('signed rules and data are loaded; unsigned, another’s or changed ones are not', async () => {
    const dir = await copyOfShipped();
    const { publicKey, privateKey } = await keys();
    await expect(startEngine(dir, { publicKey })).rejects.toMatchObject({ code: 'policy_unsigned' });
    await signRelease(dir, undefined, (await keys()).privateKey);
    await expect(startEngine(dir, { publicKey })).rejects.toMatchObject({ code: 'policy_unsigned' });
    await signRelease(dir, undefined, privateKey);
    const { engine } = await startEngine(dir, { publicKey });
    await edit(dir, DENY_CURL);
    await refused(engine, 'policy_unsigned');
    expect(engine.decide(CURL).effect).toBe('allow');
  });

  test('each signed change raises the version: an old signature is not used again', async () => {
    const dir = await copyOfShipped();
    const { publicKey, privateKey } = await keys();
    await signRelease(dir, undefined, privateKey);
    const { engine } = await startEngine(dir, { publicKey });
    await edit(dir, DENY_CURL);
    await signRelease(dir, undefined, privateKey);
    await refused(engine, 'policy_version');
    await edit(dir, ['release.yaml', 'version: 1', 'version: 2']);
    await signRelease(dir, undefined, privateKey);
    await engine.reload();
    expect(engine.decide(CURL).effect).toBe('deny');
  });
});

describe('what was accepted is remembered', () => {
  test('a restart goes on with the last good rules, and says why', async () => {
    const [dir, stateDir] = await Promise.all([copyOfShipped(), temporaryDir()]);
    await edit(dir, DENY_CURL);
    const first = await startEngine(dir, { stateDir });
    const { snapshot } = first.engine.status();
    await first.engine.close();

    await edit(dir, DENY_NOTHING);
    const second = await startEngine(dir, { stateDir });
    expect(second.engine.decide(CURL).effect).toBe('deny');
    expect(second.engine.status()).toMatchObject({ snapshot, reloadFault: expect.stringContaining('allows more') });
    await second.engine.close();

    await rm(join(dir, 'dist'), { recursive: true });
    const third = await startEngine(dir, { stateDir });
    expect(third.engine.decide(CURL).effect).toBe('deny');
    expect(types(third)).toEqual(['policy.loaded', 'policy.reload_failed']);
  });

  test('what was kept and is not what was accepted is refused', async () => {
    const [dir, stateDir] = await Promise.all([copyOfShipped(), temporaryDir()]);
    const { engine } = await startEngine(dir, { stateDir });
    const file = join(stateDir, 'policy', `${engine.status().snapshot}.json`);
    await engine.close();
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll('busybox', 'busybux'));
    await expect(startEngine(dir, { stateDir })).rejects.toMatchObject({ code: 'policy_malformed' });
  });

  test('the age of what runs is told', async () => {
    const { engine, clock } = await startEngine(await copyOfShipped());
    expect(engine.status().ageMs).toBe(0);
    clock.advance(1500);
    expect(engine.status().ageMs).toBe(1500);
  });
});

describe('Y5 an earlier snapshot runs again', () => {
  async function changed() {
    const [dir, stateDir] = await Promise.all([copyOfShipped(), temporaryDir()]);
    const started = await startEngine(dir, { stateDir });
    const first = started.engine.status().snapshot ?? '';
    await edit(dir, DENY_CURL);
    await started.engine.reload();
    return { ...started, started, dir, stateDir, first, second: started.engine.status().snapshot ?? '' };
  }

  test('and what is on disk stays out until it changes', async () => {
    const { engine, events, started, dir, stateDir, first, second } = await changed();
    expect((await engine.snapshots()).map(({ snapshot }) => snapshot).sort()).toEqual([first, second].sort());
    const change = await engine.rollBack({ digest: first.slice(0, 10), by: 'default/paula' });
    expect(change).toMatchObject({ changed: true, snapshot: first });
    expect(events.at(-1)).toEqual({ type: 'policy.rolled_back', data: { by: 'default/paula', from: second, to: first } });
    expect(engine.decide(CURL).effect).toBe('allow');
    await engine.reload();
    expect(engine.status()).toMatchObject({ snapshot: first, reloadFault: expect.stringContaining('rolled back') });
    expect(types(started)).not.toContain('policy.reload_failed');
    await engine.close();

    const again = await startEngine(dir, { stateDir });
    expect(again.engine.status().snapshot).toBe(first);
    await edit(dir, ['call.yaml', 'denied_programs: [curl]', 'denied_programs: [curl, wget]']);
    await again.engine.reload();
    expect(again.engine.decide(CURL).effect).toBe('deny');
  });

  test('or until a person applies it', async () => {
    const { engine, first, second } = await changed();
    await engine.rollBack({ digest: first, by: 'paula' });
    expect(await engine.apply({})).toMatchObject({ changed: true, snapshot: second });
    expect(engine.status().reloadFault).toBeUndefined();
  });

  test.each(['00000000', 'short', ''])('a digest that names none: "%s"', async (digest) => {
    const { engine } = await changed();
    await expect(engine.rollBack({ digest, by: 'paula' })).rejects.toMatchObject({ code: 'not_found' });
  });
});
