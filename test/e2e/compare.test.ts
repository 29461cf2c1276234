import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resultFaults } from '../../adapters/compare/check-results.ts';
import { type CompareOptions, runCompare } from '../../adapters/compare/main.ts';
import { descendants } from '../../adapters/compare/process-memory.ts';
import type { PlacementResult } from '../../adapters/compare/results.ts';
import { PLACEMENTS } from '../../core/run/types.ts';

let out: string;
beforeEach(async () => {
  out = await mkdtemp(join(tmpdir(), 'ow-out-'));
});
afterEach(() => rm(out, { recursive: true, force: true }));

const options = (change: Partial<CompareOptions> = {}): CompareOptions => ({
  engines: ['bubblewrap'],
  placements: PLACEMENTS,
  workload: 'survey',
  turns: 2,
  concurrency: 1,
  out,
  quick: true,
  signal: new AbortController().signal,
  log: () => {},
  ...change,
});

const workDirs = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('ow-cmp-'));

test('the same turns complete under all three placements, and what was written is what was measured', async () => {
  const before = workDirs();
  const { results, written, exitCode } = await runCompare(options());
  expect(exitCode).toBe(0);
  expect(resultFaults(results)).toEqual([]);
  expect(JSON.parse(readFileSync(join(out, 'results.json'), 'utf8'))).toEqual(results);
  expect(written).toEqual([join(out, 'results.json'), join(out, 'index.html')]);
  expect(workDirs()).toEqual(before);
  expect(await descendants(process.pid)).toEqual([]);

  const of = (name: PlacementResult['placement']): PlacementResult => {
    const found = results.placements.find((result) => result.placement === name);
    if (found === undefined) throw new Error(`no figures of ${name}`);
    return found;
  };
  expect(results.placements.map(({ turns, failed, duplicates, lost }) => ({ turns, failed, duplicates, lost }))).toEqual(
    PLACEMENTS.map(() => ({ turns: 2, failed: 0, duplicates: 0, lost: 0 })),
  );
  // What each placement promises to keep shows in the figures.
  expect(of('disposable-per-run').samples.map((sample) => sample.cold)).toEqual([true, true]);
  expect(of('persistent-per-user').samples.map((sample) => sample.cold)).toEqual([false, false]);
  expect(of('disposable-per-run').processes?.idle).toBe(1);
  expect(of('persistent-per-user').processes?.idle).toBeGreaterThan(1);
  expect(of('host-loop-shell').calls?.hostToSandboxPerTurn).toBeGreaterThanOrEqual(5);
  expect(of('persistent-per-user').calls?.membranePerTurn).toBeGreaterThan(of('host-loop-shell').calls?.membranePerTurn ?? 0);
  expect(of('host-loop-shell').enforcement['shell.exec']).toBe('kernel');
  expect(of('persistent-per-user').enforcement['shell.exec']).toBe('executor');
});

test('several users take their turns at the same moment', async () => {
  const { results } = await runCompare(options({ placements: ['persistent-per-user'], turns: 1, concurrency: 2, out: undefined }));
  expect(results.placements[0]?.turns).toBe(2);
  expect(results.placements[0]?.failed).toBe(0);
});

test('a killed executor resumes without a doubled or lost reply, and the time is measured', async () => {
  const { results } = await runCompare(options({ placements: ['persistent-per-user'], turns: 1, quick: false, out: undefined }));
  const [result] = results.placements;
  expect(result?.killToResumeMs, JSON.stringify(results.unmeasured)).not.toBeNull();
  expect({ duplicates: result?.duplicates, lost: result?.lost }).toEqual({ duplicates: 0, lost: 0 });
});

test('turns that do not complete are counted, and the exit code is 1', async () => {
  const workload = join(out, 'endless.json');
  const toolCalls = [{ name: 'shell', args: { argv: ['true'] } }];
  const steps = Array.from({ length: 64 }, () => ({ content: 'Again.', toolCalls }));
  await writeFile(workload, JSON.stringify({ name: 'endless', description: 'Never comes to a reply.', steps }));
  const { results, exitCode } = await runCompare(options({ placements: ['persistent-per-user'], workload, turns: 1, out: undefined }));
  expect(exitCode).toBe(1);
  expect(results.placements[0]).toMatchObject({ turns: 1, failed: 1, latencyMs: null, lost: 0 });
  expect(results.workload.repository).toBeNull();
});

test('an abort ends every process and leaves no file', async () => {
  const before = workDirs();
  const abort = new AbortController();
  const lines: string[] = [];
  const log = (line: string): void => {
    lines.push(line);
    if (line.startsWith('turn 1/2  host-loop-shell')) abort.abort();
  };
  await expect(runCompare(options({ signal: abort.signal, log }))).rejects.toThrow();
  expect(lines.filter((line) => line.startsWith('turn'))).toHaveLength(1);
  expect(await descendants(process.pid)).toEqual([]);
  expect(workDirs()).toEqual(before);
  expect(existsSync(join(out, 'results.json'))).toBe(false);
});

test('what cannot be measured is refused before anything starts', async () => {
  const refused: readonly Partial<CompareOptions>[] = [
    { turns: 0 },
    { turns: 1.5 },
    { concurrency: 0 },
    { placements: [] },
    { engines: [] },
  ];
  for (const change of refused) await expect(runCompare(options(change))).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('an engine that did not serve the turns gives no figures under its name', async () => {
  await expect(runCompare(options({ engines: ['docker'], placements: ['persistent-per-user'], turns: 1 }))).rejects.toMatchObject({
    code: 'engine_unavailable',
  });
  expect(existsSync(join(out, 'results.json'))).toBe(false);
});
