import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../adapters/policy/settings.ts';
import { compareWithShipped, loadShipped } from '../../adapters/policy/shipped.ts';
import type { PolicyEngineOptions } from '../../adapters/policy/wasm-engine.ts';
import { startEngine, type TestEngine } from './support/engine.ts';
import { shellInput } from './support/inputs.ts';
import { copyOfShipped, SHIPPED, temporaryDir } from './support/policy-dir.ts';

const LOOSER = ['call.yaml', 'message.post: [executor]', 'message.post: [executor, operator]'] as const;
const STRICTER = ['call.yaml', 'denied_programs: []', 'denied_programs: [curl]'] as const;

async function changed(...edits: readonly (readonly [file: string, from: string, to: string])[]): Promise<string> {
  const dir = await copyOfShipped();
  for (const [file, from, to] of edits) {
    const path = join(dir, 'data', file);
    const text = await readFile(path, 'utf8');
    expect(text).toContain(from);
    await writeFile(path, text.replace(from, to));
  }
  return dir;
}

const first = async (dir: string, change: Partial<PolicyEngineOptions> = {}): Promise<TestEngine> =>
  startEngine(dir, { stateDir: await temporaryDir(), shipped: () => loadShipped(SHIPPED), ...change });

const types = ({ events }: TestEngine) => events.map(({ type }) => type);

test('what was shipped is the data beside which the rules were built, whatever lies in data/ now', async () => {
  const dir = await changed(LOOSER);
  const shipped = await loadShipped(dir);
  expect(shipped.snapshot).toBe((await loadShipped(SHIPPED)).snapshot);
  // The committed data is what the committed dist remembers.
  expect(shipped.digests.data).toBe((await loadSettings(SHIPPED)).digest);
});

describe('the first rules and data of a state directory', () => {
  test('the shipped ones can be gone back to, though they never ran here', async () => {
    const { engine } = await first(await changed(STRICTER));
    const shipped = (await engine.snapshots()).find(({ current }) => !current);
    expect(shipped?.snapshot).toBe((await loadShipped(SHIPPED)).snapshot);
    await engine.rollBack({ digest: shipped?.snapshot ?? '', by: 'default/paula' });
    expect(engine.decide(shellInput(['curl'])).effect).toBe('allow');
  });

  test('the shipped ones are loaded without a word more', async () => {
    const started = await first(SHIPPED);
    expect(types(started)).toEqual(['policy.loaded']);
    expect(started.engine.status().ready).toBe(true);
    expect(started.engine.decide(shellInput(['make'])).effect).toBe('allow');
    expect(await started.engine.snapshots()).toMatchObject([{ current: true }]);
  });

  test('looser ones are an event that names what is looser', async () => {
    const started = await first(await changed(LOOSER));
    expect(types(started)).toEqual(['policy.loaded', 'policy.first_loaded']);
    const { snapshot } = started.engine.status();
    expect(started.events[1]?.data).toEqual({
      shipped: (await loadShipped(SHIPPED)).snapshot,
      to: snapshot,
      flips: 2,
      first: expect.arrayContaining([{ of: 'message.post by operator', before: 'deny', after: 'allow' }]),
      unjudged: [],
    });
  });

  test('stricter ones too, with nothing that is looser', async () => {
    const started = await first(await changed(STRICTER));
    expect(started.events[1]).toMatchObject({ type: 'policy.first_loaded', data: { flips: 0, first: [] } });
  });

  test('where they are held, looser ones are refused and nothing is accepted; stricter and shipped ones are not', async () => {
    const stateDir = await temporaryDir();
    const looser = await changed(LOOSER);
    await expect(first(looser, { holdFirst: true, stateDir })).rejects.toMatchObject({
      code: 'policy_widening',
      message: expect.stringContaining('message.post: deny → allow'),
      hint: expect.stringContaining('--allow-widening'),
    });
    // Still the first time: nothing of the refused one is remembered.
    await expect(first(looser, { holdFirst: true, stateDir })).rejects.toMatchObject({ code: 'policy_widening' });
    const stricter = await first(await changed(STRICTER), { holdFirst: true, stateDir });
    expect(stricter.engine.decide(shellInput(['curl'])).effect).toBe('deny');
    expect(types(await first(SHIPPED, { holdFirst: true }))).toEqual(['policy.loaded']);
  });

  test('a person applies looser ones, by name, before any kernel ran; then the kernel goes on with them', async () => {
    const stateDir = await temporaryDir();
    const dir = await changed(LOOSER);
    const by = await first(dir, { holdFirst: true, stateDir, leaveDisk: true });
    await expect(by.engine.apply({})).rejects.toMatchObject({ code: 'policy_widening' });
    const change = await by.engine.apply({ widenBy: 'default/paula' });
    expect(by.events.at(-1)).toMatchObject({ type: 'policy.widened', data: { by: 'default/paula', to: change.snapshot, flips: 2 } });
    await by.engine.close();
    const kernel = await first(dir, { holdFirst: true, stateDir });
    expect(kernel.engine.status()).toMatchObject({ snapshot: change.snapshot, reloadFault: undefined });
    expect(types(kernel)).toEqual(['policy.loaded']);
  });

  test('applied as they were shipped they are accepted', async () => {
    const stateDir = await temporaryDir();
    const { engine } = await first(SHIPPED, { stateDir, leaveDisk: true });
    expect(await engine.apply({})).toMatchObject({ changed: true, flips: [] });
    expect(await engine.snapshots()).toHaveLength(1);
    expect(await engine.apply({})).toMatchObject({ changed: false });
  });
});

test('how far what was accepted is from what was shipped can be asked for at any time', async () => {
  const [dir, stateDir] = [await changed(LOOSER), await temporaryDir()];
  const place = { policy: { dir }, stateDir };
  expect((await compareWithShipped({ policy: { dir: SHIPPED }, stateDir })).flips).toEqual([]);
  // Nothing is accepted yet: what is on disk would be.
  expect((await compareWithShipped(place)).flips).toContainEqual(expect.objectContaining({ of: 'message.post by operator', looser: true }));
  await first(SHIPPED, { stateDir });
  expect((await compareWithShipped(place)).flips).toEqual([]);
});
