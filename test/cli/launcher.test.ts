import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LAUNCHER } from '../support/launcher.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-launch-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/**
 * A launcher that believes it runs on Node 20, in a package of its own whose "packaged Node" is the given shell script. What is replaced
 * is the version it reads; the launcher's text is the real one.
 */
function oldNodePackage(packagedNode: string | undefined): string[] {
  const folder = join(dir, 'adapters', 'cli');
  mkdirSync(folder, { recursive: true });
  cpSync(LAUNCHER, join(folder, 'launcher.js'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  const old = join(dir, 'old.cjs');
  writeFileSync(old, `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`);
  if (packagedNode !== undefined) {
    const home = join(dir, 'node_modules', `node-linux-${process.arch}`);
    mkdirSync(join(home, 'bin'), { recursive: true });
    writeFileSync(join(home, 'package.json'), '{}');
    writeFileSync(join(home, 'bin', 'node'), `#!/bin/sh\n${packagedNode}\n`, { mode: 0o755 });
  }
  return ['--require', old, join(folder, 'launcher.js')];
}

const run = (args: readonly string[]) =>
  spawnSync(process.execPath, args, { encoding: 'utf8', cwd: dir, env: { PATH: '/usr/bin:/bin', HOME: dir } });

describe('launcher', () => {
  it('on a Node that is new enough runs the command line here, and warns of no experiment', () => {
    expect(run([LAUNCHER, '--version'])).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
    const users = run([LAUNCHER, 'user', 'ls', '--json']);
    expect(users).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(users.stdout)).toEqual([]);
  });

  it('as a program holds the young generation of the heap small, and hands that on', () => {
    const packaged = oldNodePackage(undefined).at(-1) ?? '';
    writeFileSync(join(packaged, '..', 'main.ts'), 'export const main = () => { console.log(process.execArgv.join()); return 0; };');
    chmodSync(packaged, 0o755);
    const started = spawnSync(packaged, { encoding: 'utf8', env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` } });
    expect(started).toMatchObject({ status: 0, stdout: '--max-semi-space-size=4\n', stderr: '' });
    // An older Node starts the packaged one with it; control: without it there is none.
    const old = oldNodePackage('echo "$@"');
    expect(run(['--max-semi-space-size=4', ...old]).stdout).toMatch(/^--max-semi-space-size=4 .*launcher\.js\n$/);
    expect(run(old).stdout).not.toContain('semi-space');
  });

  it('on an older one runs itself again with the packaged Node, arguments and exit code passed on', () => {
    const { status, stdout } = run([...oldNodePackage('shift 2; echo "$@" "$OUTWORK_LAUNCHED"; exit 37'), '--json', 'a b']);
    expect({ status, stdout }).toEqual({ status: 37, stdout: expect.stringMatching(/launcher\.js --json a b 1\n$/) });
  });

  it('without a packaged Node is exit 3 and names the command, in one JSON document when asked', () => {
    const plain = run(oldNodePackage(undefined));
    expect(plain).toMatchObject({ status: 3, stdout: '' });
    expect(plain.stderr).toContain('hint: npm ci --include=optional');
    const { status, stdout, stderr } = run([...oldNodePackage(undefined), '--json']);
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'component_missing', hint: 'npm ci --include=optional' } });
  });

  it('does not go round when the packaged Node is too old as well', () => {
    const { status, stderr } = run(oldNodePackage(`exec ${process.execPath} "$@"`));
    expect(status).toBe(3);
    expect(stderr).toContain('20.20.2');
  });

  it('passes signals on, and ends as the other Node ended', async () => {
    const handled = start(oldNodePackage('trap "echo got; exit 9" TERM; echo up; while :; do sleep 0.1; done'));
    await output(handled, 'up');
    handled.kill('SIGTERM');
    expect(await ended(handled)).toEqual([9, null]);
    const killed = start(oldNodePackage('echo up; kill -KILL $$'));
    expect(await ended(killed)).toEqual([null, 'SIGKILL']);
  });
});

describe('a real process', () => {
  it('whose reader goes away says nothing of it', () => {
    const command = `"${process.execPath}" "${LAUNCHER}" --help | true; "${process.execPath}" "${LAUNCHER}" events tail --no-follow | head -c 0`;
    const { stderr, status } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin', HOME: dir } });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  });

  it('whose reader goes away while it streams ends by itself', async () => {
    const added = run([LAUNCHER, 'user', 'add', 'ann']);
    expect(added.status, added.stderr).toBe(0);
    const child = start([LAUNCHER, 'events', 'tail', '--json']);
    child.stdout?.destroy();
    expect(await ended(child)).toEqual([0, null]);
  });

  it('that tails ends with 130 on Ctrl-C', async () => {
    run([LAUNCHER, 'user', 'add', 'ann']);
    const child = start([LAUNCHER, 'events', 'tail']);
    await output(child, 'user.added');
    child.kill('SIGINT');
    expect(await ended(child)).toEqual([130, null]);
  });
});

const start = (args: readonly string[]): ChildProcess =>
  spawn(process.execPath, args, { cwd: dir, env: { PATH: '/usr/bin:/bin', HOME: dir }, stdio: ['ignore', 'pipe', 'pipe'] });

const ended = async (child: ChildProcess): Promise<unknown[]> => once(child, 'exit');

const output = (child: ChildProcess, wanted: string): Promise<void> =>
  new Promise((resolve) => {
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes(wanted)) resolve();
    });
  });
