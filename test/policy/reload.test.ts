import { appendFile, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import { startEngine, type TestEngine } from './support/engine.ts';
import { placementInput, shellInput } from './support/inputs.ts';
import { copyOfShipped } from './support/policy-dir.ts';

const CURL = shellInput(['curl', 'x']);

async function deny(dir: string, programs: string): Promise<void> {
  const path = join(dir, 'data', 'call.yaml');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace(/^denied_programs: .*$/m, `denied_programs: ${programs}`));
}

const lastEvent = ({ events }: TestEngine) => events.at(-1);

describe('Y3 data is reloaded without a restart, and only when it is good', () => {
  test('a denied program is denied after two looks, under a new data digest', async () => {
    const dir = await copyOfShipped();
    const started = await startEngine(dir);
    const { engine, clock } = started;
    const before = engine.decide(CURL);
    await deny(dir, '[curl]');
    expect(engine.decide(CURL)).toMatchObject({ effect: 'allow', digests: before.digests });
    await clock.poll();
    await clock.poll();
    const after = engine.decide(CURL);
    expect(after).toMatchObject({ effect: 'deny', reasons: [{ code: 'program_denied' }] });
    expect(after.digests.rules).toBe(before.digests.rules);
    expect(after.digests.data).not.toBe(before.digests.data);
    expect(lastEvent(started)).toEqual({ type: 'policy.loaded', data: after.digests });
    expect(engine.decide(shellInput(['make'])).effect).toBe('allow');
  });

  test('a file that still changes between two looks is not read', async () => {
    const dir = await copyOfShipped();
    const { engine, clock, events } = await startEngine(dir);
    await deny(dir, '[curl]');
    await clock.poll();
    await appendFile(join(dir, 'data', 'call.yaml'), '# more\n');
    await clock.poll();
    expect(engine.decide(CURL).effect).toBe('allow');
    expect(events).toHaveLength(1);
    await clock.poll();
    expect(engine.decide(CURL).effect).toBe('deny');
  });

  test.each([
    ['half-written: cut within a line', (text: string) => text.slice(0, text.indexOf('  - bash') + 6)],
    ['half-written: cut at a line end', (text: string) => text.slice(0, text.indexOf('denied_programs'))],
    ['empty', () => ''],
    ['not YAML', () => 'allowed: [\n'],
    ['the same key twice', (text: string) => `${text}ask: []\n`],
    ['an unknown key', (text: string) => `${text}more: 1\n`],
    ['an unknown capability', (text: string) => text.replace('fs.list:', 'fs.delete:')],
    ['a wrong type', (text: string) => text.replace('denied_programs: []', 'denied_programs: curl')],
    ['a path for a program', (text: string) => text.replace('denied_programs: []', 'denied_programs: [/bin/curl]')],
    ['an alias', (text: string) => text.replace('ask: []', 'ask: &a []').replace('limits: {}', 'limits: *a')],
  ])('bad data keeps the last good one: %s', async (_, spoil) => {
    const dir = await copyOfShipped();
    await deny(dir, '[curl]');
    const started = await startEngine(dir);
    const { engine, clock } = started;
    const path = join(dir, 'data', 'call.yaml');
    const good = await readFile(path, 'utf8');
    await writeFile(path, spoil(good.replace('denied_programs: [curl]', 'denied_programs: []')));
    await clock.poll();
    await clock.poll();
    expect(engine.decide(CURL).effect).toBe('deny');
    expect(engine.status().reloadFault).toContain('call.yaml');
    expect(lastEvent(started)).toMatchObject({ type: 'policy.reload_failed', data: { code: 'policy_malformed' } });

    await writeFile(path, good);
    await clock.poll();
    await clock.poll();
    expect(engine.status().reloadFault).toBeUndefined();
  });

  test('a file without a schema, and a schema without a file, are refused', async () => {
    const dir = await copyOfShipped();
    const { engine } = await startEngine(dir);
    await writeFile(join(dir, 'data', 'extra.yaml'), 'a: 1\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain('extra.yaml');
    await rm(join(dir, 'data', 'extra.yaml'));
    await rename(join(dir, 'data', 'effects.yaml'), join(dir, 'effects.yaml'));
    await engine.reload();
    expect(engine.status().reloadFault).toContain('effects.yaml');
    expect(engine.decide(shellInput(['git', 'log'])).obligations).toHaveLength(1);
  });

  test('the fault is told once, however often the files are looked at', async () => {
    const dir = await copyOfShipped();
    const { clock, events } = await startEngine(dir);
    await writeFile(join(dir, 'data', 'call.yaml'), '');
    for (let i = 0; i < 5; i += 1) await clock.poll();
    expect(events.map((event) => event.type)).toEqual(['policy.loaded', 'policy.reload_failed']);
  });

  test.each([
    ['a file is spoiled', 'data/call.yaml', (path: string) => writeFile(path, '')],
    ['a file is away', 'data/call.yaml', (path: string) => rename(path, `${path}.away`)],
    ['a folder is away', 'data', (path: string) => rename(path, `${path}.away`)],
  ])('the good set is back: an event says so, once, and the figures are well again (%s)', async (_, file, spoil) => {
    const dir = await copyOfShipped();
    const started = await startEngine(dir);
    const { engine, clock, events } = started;
    const before = engine.status();
    const path = join(dir, file);
    const good = file === 'data' ? '' : await readFile(path, 'utf8');
    await spoil(path);
    for (let look = 0; look < 4; look += 1) await clock.poll();
    expect(events.map(({ type }) => type)).toEqual(['policy.loaded', 'policy.reload_failed']);
    expect(engine.status().reloadFault).toEqual(expect.any(String));
    clock.advance(1000);

    await rename(`${path}.away`, path).catch(() => writeFile(path, good));
    for (let look = 0; look < 4; look += 1) await clock.poll();
    expect(events.slice(2)).toEqual([{ type: 'policy.restored', data: before.digests }]);
    expect(engine.status()).toEqual({ ...before, ageMs: 1000 });
    expect(engine.decide(CURL).effect).toBe('allow');
  });
});

describe('rules, module and manifest belong together', () => {
  const RULE = ['outwork', 'placement', 'harness.rego'];

  /** Denies foreign harnesses in one placement more. */
  const narrow = async (path: string) => {
    const text = await readFile(path, 'utf8');
    await writeFile(
      path,
      text.replace('input.placement == "host-loop-shell"', 'input.placement in {"disposable-per-run", "host-loop-shell"}'),
    );
  };

  test('an engine does not start on rules that were changed and not built (control: built, it starts)', async () => {
    const dir = await copyOfShipped();
    const path = join(dir, ...RULE);
    await narrow(path);
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_stale', hint: 'outwork policy build' });
    await buildPolicy(dir);
    const { engine } = await startEngine(dir);
    expect(engine.decide(placementInput({ harness: 'acme', placement: 'persistent-per-user' })).effect).toBe('allow');
    expect(engine.decide(placementInput({ harness: 'acme', placement: 'disposable-per-run' })).effect).toBe('deny');
  });

  test('a rule that is added or renamed is noticed too', async () => {
    const dir = await copyOfShipped();
    await writeFile(join(dir, 'outwork', 'call', 'extra.rego'), 'package outwork.call\n');
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_stale' });
  });

  test('a test of a rule is no rule', async () => {
    const dir = await copyOfShipped();
    await writeFile(join(dir, 'outwork', 'call', 'extra_test.rego'), 'package outwork.call_test\n');
    await startEngine(dir);
  });

  test('a module that its manifest does not name is refused', async () => {
    const dir = await copyOfShipped();
    await appendFile(join(dir, 'dist', 'policy.wasm'), Buffer.from([0]));
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_stale' });
  });

  test('nothing that was built is told apart from what is broken: the hint says how to build', async () => {
    const dir = await copyOfShipped();
    await rm(join(dir, 'dist', 'manifest.json'));
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_stale', hint: 'outwork policy build' });
  });

  test.each([
    ['no JSON', '{'],
    ['another schema', '{"schema":2}'],
    ['null', 'null'],
    ['no entrypoint', '{"schema":1,"sources":"","wasm":"","entrypoints":["outwork/other"]}'],
  ])('a bad manifest is refused: %s', async (_, text) => {
    const dir = await copyOfShipped();
    await writeFile(join(dir, 'dist', 'manifest.json'), text);
    await expect(startEngine(dir)).rejects.toMatchObject({ code: 'policy_malformed' });
  });

  test('Y3 rules that do not load leave the last good ones running; built, they run', async () => {
    const dir = await copyOfShipped();
    const { engine, clock } = await startEngine(dir);
    const path = join(dir, ...RULE);
    await narrow(path);
    await clock.poll();
    await clock.poll();
    expect(engine.status().reloadFault).toContain('was built from other rules');
    expect(engine.decide(placementInput({ harness: 'acme', placement: 'disposable-per-run' })).effect).toBe('allow');
    await buildPolicy(dir);
    await clock.poll();
    await clock.poll();
    expect(engine.status().reloadFault).toBeUndefined();
    expect(engine.decide(placementInput({ harness: 'acme', placement: 'disposable-per-run' })).effect).toBe('deny');
  });
});
