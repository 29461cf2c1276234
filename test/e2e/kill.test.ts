import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { PLACEMENTS, type PlacementName } from '../../core/run/types.ts';
import { commandsOf, type E2e, type E2eOptions, e2e, processWith, scenario, uniqueSeconds } from '../support/e2e.ts';

/** Counts its own runs in the workspace; only the first one lasts. */
const countThenSleep = (seconds: string) => ['sh', '-c', `echo x >> count; [ "$(wc -l < count)" -gt 1 ] || exec sleep ${seconds}`];

const killGuest = async (world: E2e, run: string): Promise<void> => {
  const [attempt] = (await world.kernel.showRun(run)).attempts;
  process.kill(world.guestPid(attempt?.sandbox ?? ''), 'SIGKILL');
};

/** How often the counting command of the user's workspace has run. */
const counted = async (world: E2e): Promise<string | undefined> => {
  await world.switchScenario(scenario('count', [['wc', '-l', 'count']]));
  return commandsOf(await world.turn('count'))
    .at(-1)
    ?.stdout.trim();
};

describe.each(PLACEMENTS)('kill -9 of what executes, under %s', (placement) => {
  it('between commands: completes, and no finished command runs twice', async () => {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const onModel = async (_: unknown, step: number) => {
      if (step !== 1) return;
      reached.resolve();
      await gate.promise;
    };
    await using world = await e2e({
      placement,
      onModel,
      scenario: scenario('two', [
        ['sh', '-c', 'echo x >> count'],
        ['sh', '-c', 'echo x >> count'],
      ]),
    });
    const run = await world.post('go');
    await reached.promise;
    await killGuest(world, run);
    await world.event(run, (event) => event.type === 'run.reclaimed');
    gate.resolve();
    expect((await world.until(run)).run.state).toBe('completed');
    expect(await counted(world)).toBe('2 count');
  });

  it('inside a pure command: it runs again, and the run completes', async () => {
    const seconds = uniqueSeconds(2);
    await using world = await e2e({ placement, pure: ['sleep'], scenario: scenario('pure', [['sleep', seconds]]) });
    const run = await world.post('go');
    await processWith(seconds);
    await killGuest(world, run);
    const view = await world.until(run);
    expect(view.run).toMatchObject({ state: 'completed', fence: 2, reclaims: 1 });
    expect(commandsOf(view)).toMatchObject([{ exitCode: 0 }]);
  });

  it.each([
    ['done', 'completed', '1 count'],
    ['not-done', 'completed', '2 count'],
    ['abort', 'failed', '1 count'],
  ] as const)('inside a once command: parks as unknown with evidence; a person ends it as %s', async (as, state, runs) => {
    const seconds = uniqueSeconds(60);
    await using world = await e2e({ placement, scenario: scenario('once', [countThenSleep(seconds)]) });
    const run = await world.post('go');
    await processWith(seconds);
    await killGuest(world, run);
    const parked = await world.until(run);
    expect(parked.run).toMatchObject({ state: 'parked', gate: { kind: 'unknown', reason: expect.stringContaining('echo x >> count') } });
    expect(parked.next).toContain(`outwork runs resolve ${run}`);
    await world.kernel.resolveRun(run, as);
    expect((await world.until(run, ['completed', 'failed', 'cancelled'])).run.state).toBe(state);
    expect(await counted(world)).toBe(runs);
  });
});

describe.each(PLACEMENTS)('kill -9 of the kernel, under %s', (placement) => {
  let child: ChildProcess | undefined;
  let stateDir: string | undefined;

  afterEach(() => {
    child?.kill('SIGKILL');
    if (stateDir !== undefined) rmSync(stateDir, { recursive: true });
  });

  /** Posts one message and lets a kernel of its own process work on it. */
  const begin = async (options: E2eOptions & { placement: PlacementName }): Promise<string> => {
    stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
    const first = await e2e({ ...options, stateDir });
    await first.kernel.close();
    const store = await openSqliteStore({ file: join(stateDir, 'outwork.db') });
    const posted = await store.threads.post({ tenant: 'default', actor: 'ada', origin: 'operator', body: 'go', nowMs: Date.now() });
    await store.close();
    child = spawn(process.execPath, ['test/support/kernel-child.ts', JSON.stringify({ ...options, stateDir })], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return posted.run.id;
  };

  const killKernel = async (): Promise<void> => {
    child?.kill('SIGKILL');
    if (child?.signalCode === null) await once(child, 'exit');
  };

  it('inside a pure command: the next kernel runs it again', async () => {
    const seconds = uniqueSeconds(2);
    const options = { placement, pure: ['sleep'], scenario: scenario('pure', [['sleep', seconds]]) };
    const run = await begin(options);
    await processWith(seconds);
    await killKernel();
    await using world = await e2e({ ...options, stateDir: stateDir ?? '' });
    expect((await world.until(run)).run).toMatchObject({ state: 'completed', fence: 2 });
  });

  it('inside a once command: the next kernel parks it as unknown, and it has run once', async () => {
    const seconds = uniqueSeconds(60);
    const options = { placement, scenario: scenario('once', [countThenSleep(seconds)]) };
    const run = await begin(options);
    await processWith(seconds);
    await killKernel();
    await using world = await e2e({ ...options, stateDir: stateDir ?? '' });
    expect((await world.until(run)).run).toMatchObject({ state: 'parked', gate: { kind: 'unknown' } });
    await world.kernel.resolveRun(run, 'done');
    expect((await world.until(run, ['completed', 'failed'])).run.state).toBe('completed');
    expect(await counted(world)).toBe('1 count');
  });
});
