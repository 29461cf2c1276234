import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createKernel } from '../../adapters/compose.ts';
import type { SqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { lockStateDir } from '../../adapters/store/state-lock.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { steadyClock } from '../../core/seams/clock.ts';
import { commandsOf, e2e, processWith, scenario, uniqueSeconds } from '../support/e2e.ts';
import { testConfig } from '../support/run-world.ts';

describe.each(PLACEMENTS)('under %s', (placement) => {
  it('a kernel whose clock is an hour behind the machine’s runs commands to their end', async () => {
    const clock = steadyClock(() => Date.now() - 3_600_000);
    await using world = await e2e({ placement, scenario: scenario('sleep', [['sleep', '0.2']]), kernel: { clock } });
    expect(commandsOf(await world.turn('go'))).toMatchObject([{ exitCode: 0, timedOut: false }]);
  });

  it('a user who has locked the workspace has it again with the next sandbox', async () => {
    await using world = await e2e({ placement, scenario: scenario('lock', [['chmod', '0', '/workspace']]) });
    await world.turn('lock');
    await using again = await world.reopen({ scenario: scenario('look', [['ls', '-d', '.']]) });
    expect(commandsOf(await again.turn('look'))).toMatchObject([{ exitCode: 0 }]);
  });

  it('a cancellation after the reply changes nothing: the reply is in the thread, and the run has completed', async () => {
    await using world = await e2e({ placement, scenario: 'hello' });
    const run = await world.post('go');
    await world.event(run, (event) => event.type === 'message.posted' && event.data.author === 'agent');
    await world.kernel.cancelRun(run);
    expect((await world.until(run)).run.state).toBe('completed');
  });
});

it('cancelling one run of the host loop leaves the user’s sandbox and what runs in it in the background', async () => {
  const kept = uniqueSeconds(600);
  const slow = uniqueSeconds(600);
  await using world = await e2e({ placement: 'host-loop-shell', scenario: scenario('start', [['true']], { background: ['sleep', kept] }) });
  const first = await world.turn('start');
  const background = await processWith(kept);
  await world.switchScenario(scenario('slow', [['sleep', slow]]));
  const run = await world.post('wait');
  const command = await processWith(slow);
  await world.kernel.cancelRun(run);
  expect((await world.until(run)).run.state).toBe('cancelled');
  expect(existsSync(`/proc/${command}`)).toBe(false);
  expect(existsSync(`/proc/${background}`)).toBe(true);
  await world.switchScenario('hello');
  expect((await world.turn('again')).attempts[0]?.sandbox).toBe(first.attempts[0]?.sandbox);
});

it('what an attempt left is gone before its ledger is judged: the sandbox has ended before the run parks', async () => {
  const seconds = uniqueSeconds(600);
  const many = ['sh', '-c', `for i in $(seq 100); do sleep 700 & done; exec sleep ${seconds}`];
  await using world = await e2e({ placement: 'persistent-per-user', scenario: scenario('many', [many]) });
  const run = await world.post('go');
  await processWith(seconds);
  const [attempt] = (await world.kernel.showRun(run)).attempts;
  process.kill(world.guestPid(attempt?.sandbox ?? ''), 'SIGKILL');
  expect((await world.until(run)).run).toMatchObject({ state: 'parked', gate: { kind: 'unknown' } });
  const types = (await world.kernel.events(0, {}, 1000)).map((event) => event.type);
  expect(types.indexOf('sandbox.stopped')).toBeGreaterThan(0);
  expect(types.indexOf('sandbox.stopped')).toBeLessThan(types.indexOf('call.unknown'));
});

it('a kernel that cannot be put together says why, and leaves its state directory to the next', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
  const config = testConfig({ stateDir, model: { gateway: 'scripted', scenario: '/dev/zero' } });
  await expect(createKernel(config)).rejects.toMatchObject({ code: 'config_unreadable' });
  const lock = await lockStateDir(stateDir);
  await lock.release();
  rmSync(stateDir, { recursive: true });
});

it('a part that cannot be closed keeps the kernel from closing no other one, and the state directory from nobody', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
  const broken = (store: SqliteStore): SqliteStore => ({
    ...store,
    commits: 0,
    async close() {
      await store.close();
      throw new Error('not closed');
    },
  });
  const kernel = await createKernel(testConfig({ stateDir }), { store: broken });
  await kernel.start();
  await expect(kernel.close()).rejects.toThrow('not closed');
  const lock = await lockStateDir(stateDir);
  await lock.release();
  rmSync(stateDir, { recursive: true });
});
