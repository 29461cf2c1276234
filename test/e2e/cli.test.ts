import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Run } from '../../core/run/types.ts';

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

/** A process that cannot be taken for a later one with its number. */
const identityOf = (pid: string): { parent: string; identity: string } | undefined => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    // One that has ended and waits for whoever adopted it to look (the machine's PID 1 takes its time) does nothing any more.
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return { parent: fields[1] ?? '', identity: `${pid}@${fields[19]}` };
  } catch {
    return undefined;
  }
};

const alive = (): Map<string, string> => {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return new Map(pids.flatMap((pid) => (identityOf(pid) === undefined ? [] : [[pid, identityOf(pid)?.identity ?? '']])));
};

/** Identities of all that a process started, and what those started. */
function descendants(of: number): string[] {
  const parents = new Map([...alive().keys()].map((pid) => [pid, identityOf(pid)?.parent]));
  const isBelow = (pid: string | undefined): boolean => pid !== undefined && (pid === String(of) || isBelow(parents.get(pid)));
  return [...parents.keys()].filter((pid) => isBelow(parents.get(pid))).flatMap((pid) => identityOf(pid)?.identity ?? []);
}

const stillAlive = (identities: readonly string[]): string[] => {
  const now = new Set(alive().values());
  return identities.filter((identity) => now.has(identity));
};

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
    const started = descendants(child.pid ?? 0);
    expect(started.length).toBeGreaterThan(2);
    child.kill('SIGINT');
    expect(await exit, stderr()).toEqual([130, null]);
    expect(stillAlive(started)).toEqual([]);
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
  const started = descendants(child.pid ?? 0);
  child.kill('SIGKILL');
  await exit;
  expect(outwork('user', 'ls', '--json').status).toBe(0);
  expect(rows('runs', 'ls')).toHaveLength(1);
  expect(stillAlive(started)).toEqual([]);
});
