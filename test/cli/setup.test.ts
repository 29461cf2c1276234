import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requiredComponents } from '../../adapters/cli/components.ts';
import type { CommandResult, SetupHost } from '../../adapters/cli/setup/host.ts';
import { machine } from '../../adapters/cli/setup/host.ts';
import { takeStep } from '../../adapters/cli/setup/step.ts';
import { BASE_PACKAGES, goStep, opaStep, packagesStep, stateDirStep, subIdsStep } from '../../adapters/cli/setup/steps.ts';
import { requireComponents } from '../support/require.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-setup-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

interface FakeHost extends SetupHost {
  readonly ran: string[];
}

/** A machine with the given programs; `on` answers a command, and may change the machine. */
function host(
  programs: string[],
  options: { root?: boolean; sudo?: boolean; on?: (line: string) => Partial<CommandResult> | undefined } = {},
): FakeHost {
  const ran: string[] = [];
  return {
    env: { PATH: dir, HOME: dir },
    ran,
    which: (program) => (programs.includes(program) ? `/usr/bin/${program}` : undefined),
    run: async (command, args) => {
      const line = [command, ...args].join(' ');
      if (command !== 'dpkg') ran.push(line);
      return { code: 0, stdout: '', stderr: '', ...options.on?.(line) };
    },
    privilege: async () => (options.root ? [] : options.sudo ? ['sudo', '-n'] : undefined),
  };
}

const take = (step: Parameters<typeof takeStep>[0], on: SetupHost, dryRun = false) => takeStep(step, on, { dryRun, log: () => {} });

describe('packages', () => {
  const step = packagesStep('packages', BASE_PACKAGES);

  it('that are there are left alone', async () => {
    const all = host(['bwrap', 'newuidmap', 'git'], { root: true });
    expect(await take(step, all)).toMatchObject({ state: 'present' });
    expect(all.ran).toEqual([]);
  });

  it('that are missing are installed, those only, and a second time nothing is done', async () => {
    const programs = ['git', 'apt-get'];
    const root = host(programs, { root: true, on: (line) => void (line.includes('install') && programs.push('bwrap', 'newuidmap')) });
    expect(await take(step, root)).toMatchObject({ state: 'done' });
    expect(root.ran).toEqual(['/usr/bin/apt-get install --yes --no-install-recommends bubblewrap uidmap']);
    expect(await take(step, root)).toMatchObject({ state: 'present' });
    expect(root.ran).toHaveLength(1);
  });

  it('are looked up anew when the package lists are empty', async () => {
    const programs = ['bwrap', 'newuidmap', 'apt-get'];
    let updated = false;
    const on = (line: string) => {
      if (line.includes('update')) updated = true;
      else if (!updated) return { code: 100, stderr: 'Unable to locate package git' };
      else programs.push('git');
      return undefined;
    };
    const withSudo = host(programs, { sudo: true, on });
    expect(await take(step, withSudo)).toMatchObject({ state: 'done' });
    expect(withSudo.ran.map((line) => line.split(' ').slice(0, 4).join(' '))).toEqual([
      'sudo -n /usr/bin/apt-get install',
      'sudo -n /usr/bin/apt-get update',
      'sudo -n /usr/bin/apt-get install',
    ]);
  });

  it('without the right to install are named with the command', async () => {
    const nobody = host(['apt-get', 'git']);
    const result = await take(step, nobody);
    expect(result).toMatchObject({ state: 'manual', command: 'apt-get install --yes --no-install-recommends bubblewrap uidmap' });
    expect(nobody.ran).toEqual([]);
  });

  it('a dry run changes nothing', async () => {
    const root = host(['apt-get'], { root: true });
    expect(await take(step, root, true)).toMatchObject({ state: 'planned' });
    expect(root.ran).toEqual([]);
  });

  it('on a system of another kind, and when installing fails, the step fails with the reason', async () => {
    expect(await take(step, host([], { root: true }))).toMatchObject({ state: 'failed', detail: expect.stringContaining('bubblewrap') });
    const broken = host(['apt-get'], { root: true, on: () => ({ code: 100, stderr: 'x\nno space left' }) });
    expect(await take(step, broken)).toMatchObject({ state: 'failed', detail: expect.stringContaining('no space left') });
    const liar = host(['apt-get'], { root: true });
    expect(await take(step, liar)).toMatchObject({ state: 'failed', detail: expect.stringContaining('still') });
  });
});

describe('sub-ids', () => {
  const user = { uid: 1500, name: 'keeper' };
  const files = () => ({ uids: join(dir, 'subuid'), gids: join(dir, 'subgid') });

  it('a missing range is added above all others, with usermod where there is one', async () => {
    writeFileSync(files().uids, 'ann:100000:65536\n');
    writeFileSync(files().gids, 'ann:100000:65536\nbob:165536:65536\n');
    const on = (line: string) => {
      const range = /--add-subuids (\d+)-/.exec(line)?.[1];
      for (const file of [files().uids, files().gids]) writeFileSync(file, `${readFileSync(file, 'utf8')}keeper:${range}:65536\n`);
      return undefined;
    };
    const withSudo = host(['usermod'], { sudo: true, on });
    expect(await take(subIdsStep(user, files()), withSudo)).toMatchObject({ state: 'done' });
    expect(withSudo.ran).toEqual(['sudo -n /usr/bin/usermod --add-subuids 231072-296607 --add-subgids 231072-296607 keeper']);
    expect(await take(subIdsStep(user, files()), withSudo)).toMatchObject({ state: 'present' });
  });

  it('without usermod root writes the tables, and other lines stay', async () => {
    writeFileSync(files().uids, 'ann:100000:65536\n');
    expect(await take(subIdsStep(user, files()), host([], { root: true }))).toMatchObject({ state: 'done' });
    expect(readFileSync(files().uids, 'utf8')).toBe('ann:100000:65536\nkeeper:165536:65536\n');
    expect(readFileSync(files().gids, 'utf8')).toBe('keeper:165536:65536\n');
  });

  it('an ordinary user without sudo gets the command', async () => {
    const result = await take(subIdsStep(user, files()), host(['usermod']));
    expect(result).toMatchObject({ state: 'manual', command: 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 keeper' });
    expect(existsSync(files().uids)).toBe(false);
  });
});

describe('the rest', () => {
  it('the state directory is made closed, and an open one is not mended in silence', async () => {
    const target = join(dir, 'state');
    expect(await take(stateDirStep(target), host([]))).toMatchObject({ state: 'done' });
    expect(statSync(target).mode & 0o777).toBe(0o700);
    const open = join(dir, 'open');
    mkdirSync(open, { mode: 0o755 });
    expect(await take(stateDirStep(open), host([]))).toMatchObject({ state: 'failed', detail: expect.stringContaining('chmod 700') });
  });

  it('Go is wanted only where OPA is missing, and an old one is refused', async () => {
    expect(await take(goStep(), host(['go', 'apt-get'], { on: () => ({ stdout: 'go version go1.19.8 linux/amd64' }) }))).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('1.21'),
    });
    expect(await take(goStep(), host(['go'], { on: () => ({ stdout: 'go version go1.26.1 linux/amd64' }) }))).toMatchObject({
      state: 'present',
    });
    const old = host(['apt-get'], { root: true, on: () => ({ stdout: 'golang-go:\n  Installed: (none)\n  Candidate: 2:1.19~1\n' }) });
    expect(await take(goStep(), old)).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('golang-go of this system is 1.19'),
    });
    expect(old.ran).toEqual(['apt-cache policy golang-go']);
    expect(await take(goStep(), host(['apt-get']))).toMatchObject({ state: 'manual', command: expect.stringContaining('golang-go') });
    expect(await take(opaStep(), host([]), true)).toMatchObject({
      state: 'planned',
      command: expect.stringMatching(/^go install .*opa@v/),
    });
  });
});

describe('OUTWORK_REQUIRE', () => {
  it('names components by comma; a name that is none is a fault, not nothing', async () => {
    expect(requiredComponents(' git, node,,frob ')).toEqual({ known: ['git', 'node'], unknown: ['frob'] });
    await requireComponents({ PATH: process.env.PATH, OUTWORK_REQUIRE: 'node,git' });
    await requireComponents({});
    await expect(requireComponents({ OUTWORK_REQUIRE: 'frob' })).rejects.toMatchObject({ code: 'component_missing' });
  });

  it('a named component that is missing fails', async () => {
    const empty = { PATH: dir, HOME: dir, XDG_CACHE_HOME: dir, OUTWORK_REQUIRE: 'opa' };
    await expect(requireComponents(empty)).rejects.toThrow(/opa/);
  });

  it('the machine finds programs of administrators too, and nothing that is no program', () => {
    writeFileSync(join(dir, 'plain'), '');
    const here = machine({ PATH: dir });
    expect(here.which('sh')).toBe('/usr/bin/sh');
    expect(here.which('plain')).toBeUndefined();
    expect(here.which('no-such-program-anywhere')).toBeUndefined();
  });
});
