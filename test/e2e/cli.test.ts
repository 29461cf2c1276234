import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Run } from '../../core/run/types.ts';
import { runOutwork, startOutwork } from '../support/launcher.ts';
import { processesBelow, survivors } from '../support/sandbox-processes.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-e2e-'));
  expect(outwork('user', 'add', 'ann').status).toBe(0);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const env = () => ({ XDG_STATE_HOME: join(dir, 's') });
const outwork = (...args: string[]) => runOutwork(dir, args, env());
const rows = (...args: string[]) => JSON.parse(outwork(...args, '--json').stdout) as Run[];

/** `run` in the middle of a command that sleeps. */
async function startSleeping(...more: string[]) {
  const running = startOutwork(dir, ['run', '--user', 'ann', '--scenario', 'kill-once', 'go', ...more], env());
  await running.prints(/call\.dispatched capability=shell\.exec/);
  return running;
}

describe.each(['host-loop-shell', 'disposable-per-run', 'persistent-per-user'])('run under %s', (placement) => {
  it('prints the reply', () => {
    expect(outwork('run', '--user', 'ann', '--placement', placement, 'hi')).toMatchObject({ status: 0, stdout: 'Hello.\n' });
  });

  it('Ctrl-C in the middle of a command cancels the run, exits 130 and leaves no process behind', async () => {
    const { child, exit, text } = await startSleeping('--placement', placement);
    const started = await processesBelow(child.pid ?? 0);
    expect(started.length).toBeGreaterThan(2);
    child.kill('SIGINT');
    expect(await exit, text.stderr).toBe(130);
    expect(await survivors(started)).toEqual([]);
    expect(rows('runs', 'ls').map(({ state }) => state)).toEqual(['cancelled']);
  });

  it('another terminal sees the run in its middle and cancels it', async () => {
    const { exit, text } = await startSleeping('--placement', placement);
    const [run] = rows('runs', 'ls', '--in', 'running');
    expect(outwork('runs', 'show', run?.id ?? '').stdout).toMatch(/shell\.exec +dispatched +once/);
    expect(outwork('runs', 'cancel', run?.id ?? '').status).toBe(0);
    expect(await exit, text.stderr).toBe(1);
    expect(rows('runs', 'ls').map(({ state }) => state)).toEqual(['cancelled']);
  });
});

it('a kernel that was killed leaves a state directory that the next command can use', async () => {
  const { child, exit } = await startSleeping();
  const started = await processesBelow(child.pid ?? 0);
  child.kill('SIGKILL');
  await exit;
  expect(outwork('user', 'ls', '--json').status).toBe(0);
  expect(rows('runs', 'ls')).toHaveLength(1);
  expect(await survivors(started)).toEqual([]);
});
