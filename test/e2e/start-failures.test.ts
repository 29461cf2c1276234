import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunView } from '../../core/kernel.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { LAUNCHER, runOutwork, within } from '../support/launcher.ts';

let dir: string;
let server: ChildProcess | undefined;
let log = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-'));
  log = '';
});
afterEach(async () => {
  await stopServing();
  rmSync(dir, { recursive: true, force: true });
});

const state = () => join(dir, 's');
const outwork = (...args: string[]) => runOutwork(dir, ['--state', state(), ...args]);
const run = (placement: string) => outwork('run', '--user', 'ann', '--placement', placement, 'go');

/** A kernel that sees this machine's files through mounts of its own, so that a test can take a program away from it alone. */
async function serve(): Promise<void> {
  writeFileSync(join(dir, 'outwork.yaml'), 'api: {listen: "127.0.0.1:0"}\n');
  const command = [process.execPath, LAUNCHER, '--state', state(), 'serve'];
  server = spawn('unshare', ['--mount', '--propagation', 'private', ...command], within(dir));
  server.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  await once(server.stdout as NodeJS.ReadableStream, 'data');
}

async function stopServing(): Promise<void> {
  if (server === undefined || server.exitCode !== null) return;
  const ended = once(server, 'close');
  server.kill('SIGTERM');
  await ended;
}

const inKernel = (...command: string[]) => execFileSync('nsenter', ['--mount', '--target', String(server?.pid), '--', ...command]);

const lastRun = (): RunView => {
  const [last] = JSON.parse(outwork('runs', 'ls', '--json').stdout) as [RunView['run']];
  return JSON.parse(outwork('runs', 'show', last.id, '--json').stdout) as RunView;
};

const theImage = (): string => {
  const names = readdirSync(join(state(), 'image'));
  expect(names).toHaveLength(1);
  return join(state(), 'image', names[0] ?? '');
};

describe.each(PLACEMENTS)('under %s', (placement) => {
  it('a start that cannot succeed fails the run at once, with what mends it; once mended, the same kernel runs', async () => {
    expect(outwork('user', 'add', 'ann').status).toBe(0);
    await serve();
    writeFileSync(join(dir, 'nothing'), '', { mode: 0o644 });
    inKernel('mount', '--bind', join(dir, 'nothing'), '/usr/bin/bwrap');
    const refused = run(placement);
    expect(refused.status, refused.stderr).toBe(3);
    expect(refused.stderr).toContain('failed: component_missing: no sandbox can be made: bwrap is not installed');
    expect(refused.stderr).toContain('hint: apt-get install bubblewrap');
    const { run: failed, attempts } = lastRun();
    expect(failed).toMatchObject({ state: 'failed', failure: 'component_missing', reclaims: 0 });
    expect(attempts).toHaveLength(1);
    const shown = outwork('runs', 'show', failed.id).stdout;
    expect(shown).toContain('bwrap is not installed (component_missing)');
    expect(shown).toContain('apt-get install bubblewrap');
    inKernel('umount', '/usr/bin/bwrap');
    expect(run(placement).status).toBe(0);
  });

  it('finding 4, 5: a damaged image is never started: the kernel builds it again and says so', async () => {
    expect(outwork('user', 'add', 'ann').status).toBe(0);
    expect(run(placement).status).toBe(0);
    const before = theImage();
    const guest = join(before, 'opt', 'guest.cjs');
    chmodSync(guest, 0o600);
    writeFileSync(guest, 'process.exit(0)');
    chmodSync(guest, 0o444);
    const mended = run(placement);
    expect(mended.status, mended.stderr).toBe(0);
    expect(mended.stderr).toContain('not as it was built (opt/guest.cjs damaged): built again');
    expect(theImage()).not.toBe(before);
  });
});

it('an image that goes while a kernel runs is built again; where it cannot be, the run fails at once as `image_unusable`', async () => {
  expect(outwork('user', 'add', 'ann').status).toBe(0);
  await serve();
  const images = join(state(), 'image');
  expect(run('disposable-per-run').status).toBe(0);
  rmSync(images, { recursive: true });
  writeFileSync(images, 'no directory');
  const refused = run('disposable-per-run');
  expect(refused.status, refused.stderr).toBe(3);
  expect(refused.stderr).toContain('failed: image_unusable');
  expect(refused.stderr).toContain('hint: mend');
  expect(lastRun().run).toMatchObject({ failure: 'image_unusable', reclaims: 0 });
  unlinkSync(images);
  expect(run('disposable-per-run').status).toBe(0);
});

it('a part damaged while a kernel runs costs one attempt: the next start looks again, builds, and the run completes', async () => {
  expect(outwork('user', 'add', 'ann').status).toBe(0);
  await serve();
  expect(run('disposable-per-run').status).toBe(0);
  const init = join(theImage(), 'opt', 'init.sh');
  writeFileSync(join(dir, 'broken'), 'exit 7', { mode: 0o444 });
  renameSync(join(dir, 'broken'), init);
  expect(run('disposable-per-run').status).toBe(0);
  expect(lastRun().run).toMatchObject({ state: 'completed', reclaims: 1 });
  await stopServing();
  expect(log).toContain('opt/init.sh damaged');
});

describe('outwork sandbox image build', () => {
  it('builds, says `up to date`, builds again by force; a running kernel does it and keeps what its sandboxes use', async () => {
    const first = outwork('sandbox', 'image', 'build');
    expect(first.stdout).toMatch(/^built bubblewrap [0-9a-f]{64}\n$/);
    expect(outwork('sandbox', 'image', 'build').stdout).toBe(first.stdout.replace('built', 'up to date'));
    const before = theImage();
    const forced = JSON.parse(outwork('sandbox', 'image', 'build', '--force', '--json').stdout);
    expect(forced).toMatchObject({ engine: 'bubblewrap', built: true, faults: [], removed: 1 });
    expect(theImage()).not.toBe(before);

    expect(outwork('user', 'add', 'ann').status).toBe(0);
    await serve();
    expect(run('persistent-per-user').status).toBe(0);
    const used = theImage();
    expect(JSON.parse(outwork('sandbox', 'image', 'build', '--force', '--json').stdout)).toMatchObject({ built: true, removed: 0 });
    expect(readdirSync(join(state(), 'image'))).toHaveLength(2);
    // The user's sandbox lives on, from the image that it was made of.
    expect(run('persistent-per-user').status).toBe(0);
    expect(run('disposable-per-run').status).toBe(0);
    await stopServing();
    expect(outwork('sandbox', 'image', 'build').stdout).toMatch(/^up to date/);
    expect(theImage()).not.toBe(used);
  });

  it('that cannot build ends with 3 and a hint', () => {
    expect(outwork('user', 'add', 'ann').status).toBe(0);
    writeFileSync(join(state(), 'image'), 'no directory');
    const failed = outwork('sandbox', 'image', 'build', '--json');
    expect(failed.status).toBe(3);
    expect(JSON.parse(failed.stdout)).toMatchObject({
      error: { code: 'image_unusable', hint: expect.stringContaining('sandbox image build') },
    });
  });
});
