import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startEngine } from './support/engine.ts';
import { shellInput } from './support/inputs.ts';
import { copyOfShipped, temporaryDir } from './support/policy-dir.ts';

const DENIED = /denied_programs: \[.*\]/;

/** An engine over a policy and a state directory of its own, and what a test does to both. */
async function world() {
  const dir = await copyOfShipped();
  const stateDir = await temporaryDir();
  const folder = join(stateDir, 'policy');
  const started = await startEngine(dir, { stateDir });
  return {
    ...started,
    folder,
    deny: async (...programs: string[]) => {
      const file = join(dir, 'data', 'call.yaml');
      await writeFile(file, (await readFile(file, 'utf8')).replace(DENIED, `denied_programs: [${programs.join(', ')}]`));
    },
    restarted: () => startEngine(dir, { stateDir, leaveDisk: true }),
    current: async () => JSON.parse(await readFile(join(folder, 'current.json'), 'utf8')) as { snapshot: string },
  };
}

const curl = shellInput(['curl']);

test.each([
  ['cut short', (file: string) => truncate(file, 100)],
  ['empty', (file: string) => truncate(file, 0)],
  ['something else', (file: string) => writeFile(file, 'null')],
])('an earlier snapshot that is %s keeps no narrower rules from running, and cannot be gone back to', async (_, spoil) => {
  const { engine, deny, folder, current } = await world();
  const first = (await current()).snapshot;
  await deny('curl');
  await engine.reload();
  await spoil(join(folder, `${first}.json`));
  await deny('curl', 'wget');
  await engine.reload();
  expect(engine.status().reloadFault).toBeUndefined();
  expect(engine.decide(shellInput(['wget'])).effect).toBe('deny');
  expect((await engine.snapshots()).map(({ snapshot }) => snapshot)).not.toContain(first);
  await expect(engine.rollBack({ digest: first, by: 'default/paula' })).rejects.toMatchObject({ code: 'not_found' });
});

test('a record of what was accepted that is damaged while a kernel runs keeps no narrower rules from running, and is whole again', async () => {
  const { engine, deny, folder, restarted } = await world();
  await truncate(join(folder, 'current.json'), 3);
  await deny('curl');
  await engine.reload();
  expect(engine.decide(curl).effect).toBe('deny');
  expect((await restarted()).engine.decide(curl).effect).toBe('deny');
});

test('compiled rules that are cut short are kept anew with the next data, so that a restart goes on with them', async () => {
  const { engine, deny, folder, restarted } = await world();
  const wasm = (await readdir(folder)).find((name) => name.endsWith('.wasm')) ?? '';
  await truncate(join(folder, wasm), 100);
  await deny('curl');
  await engine.reload();
  expect((await restarted()).engine.decide(curl).effect).toBe('deny');
});

test.each(['.json', '.wasm'])('a restart whose last accepted %s is gone says so, and takes nothing else for it', async (what) => {
  const { engine, folder, restarted, current } = await world();
  const { snapshot } = await current();
  const { rules } = engine.status().digests;
  await rm(join(folder, `${what === '.json' ? snapshot : rules}${what}`));
  await expect(restarted()).rejects.toMatchObject({ code: 'policy_malformed', message: expect.stringContaining('damaged') });
});

test('narrower rules that could not be remembered, a full disk, are tried again by themselves; the fault is told once', async () => {
  const { engine, clock, events, deny, folder } = await world();
  // What a write finds where its draft should be.
  const aside = join(folder, 'current.json.new');
  await mkdir(aside);
  await deny('curl');
  await clock.poll();
  await clock.poll();
  expect(engine.status().reloadFault).toContain('EISDIR');
  expect(engine.decide(curl).effect).toBe('allow');
  clock.advance(5000);
  await clock.poll();
  await rm(aside, { recursive: true });
  await clock.poll();
  expect(engine.decide(curl).effect).toBe('allow');
  clock.advance(5000);
  await clock.poll();
  expect(engine.decide(curl).effect).toBe('deny');
  expect(engine.status().reloadFault).toBeUndefined();
  expect(events.filter(({ type }) => type === 'policy.reload_failed')).toHaveLength(1);
});
