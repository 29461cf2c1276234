import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Run } from '../../core/run/types.ts';
import { processesBelow, survivors } from '../support/sandbox-processes.ts';

const LAUNCHER = join(import.meta.dirname, '..', '..', 'adapters', 'cli', 'launcher.js');

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-e2e-'));
  expect(outwork('user', 'add', 'ann').status).toBe(0);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const options = () => ({ cwd: dir, env: { PATH: process.env.PATH ?? '', HOME: dir, XDG_STATE_HOME: join(dir, 's') } });
const outwork = (...args: string[]) => spawnSync(process.execPath, [LAUNCHER, ...args], { ...options(), encoding: 'utf8' });
const rows = (...args: string[]) => JSON.parse(outwork(...args, '--json').stdout) as Run[];

/** `run` in the middle of a command that sleeps. */
async function startSleeping(...more: string[]) {
  const child = spawn(process.execPath, [LAUNCHER, 'run', '--user', 'ann', '--scenario', 'kill-once', 'go', ...more], options());
  let text = '';
  const { promise, resolve } = Promise.withResolvers<void>();
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    if (/call\.dispatched capability=shell\.exec/.test(text)) resolve();
  });
  const exit = once(child, 'exit');
  await Promise.race([promise, exit.then(() => Promise.reject(new Error(text)))]);
  return { child, exit, stderr: () => text };
}

describe.each(['host-loop-shell', 'disposable-per-run', 'persistent-per-user'])('run under %s', (placement) => {
  it('prints the reply', () => {
    expect(outwork('run', '--user', 'ann', '--placement', placement, 'hi')).toMatchObject({ status: 0, stdout: 'Hello.\n' });
  });

  it('Ctrl-C in the middle of a command cancels the run, exits 130 and leaves no process behind', async () => {
    const { child, exit, stderr } = await startSleeping('--placement', placement);
    const started = await processesBelow(child.pid ?? 0);
    expect(started.length).toBeGreaterThan(2);
    child.kill('SIGINT');
    expect(await exit, stderr()).toEqual([130, null]);
    expect(await survivors(started)).toEqual([]);
    expect(rows('runs', 'ls').map(({ state }) => state)).toEqual(['cancelled']);
  });

  it('another terminal sees the run in its middle and cancels it', async () => {
    const { exit, stderr } = await startSleeping('--placement', placement);
    const [run] = rows('runs', 'ls', '--in', 'running');
    expect(outwork('runs', 'show', run?.id ?? '').stdout).toMatch(/shell\.exec +dispatched +once/);
    expect(outwork('runs', 'cancel', run?.id ?? '').status).toBe(0);
    expect(await exit, stderr()).toEqual([1, null]);
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
