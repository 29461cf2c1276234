import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkDocker } from '../../adapters/cli/docker-check.ts';
import type { CommandResult, SetupHost } from '../../adapters/cli/setup/host.ts';
import { type CheckedHost, checkBubblewrap } from '../../adapters/sandbox/bubblewrap/checks.ts';

/** Each condition that a machine may be in is made by hand, and the command that mends it is asked for; the same host without it passes. */

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-doctor-'));
  writeFileSync(join(dir, 'subuid'), 'kernel:100000:65536\n');
  writeFileSync(join(dir, 'subgid'), 'kernel:100000:65536\n');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

interface Machine {
  /** Files and their text. */
  readonly files?: Readonly<Record<string, string>>;
  /** Programs that are not installed. */
  readonly missing?: readonly string[];
  readonly unshare?: 'works' | 'refused';
  readonly version?: string;
  /** Directories that exist. */
  readonly dirs?: readonly string[];
}

const MOUNTS = '1 0 0:1 / / rw,relatime - ext4 /dev/root rw\n2 1 0:2 / /srv/data rw,noexec - ext4 /dev/data rw\n';

function host(machine: Machine = {}): CheckedHost {
  const files: Record<string, string> = { '/proc/self/mountinfo': MOUNTS, ...machine.files };
  return {
    user: { uid: 1000, name: 'kernel' },
    subIds: { uids: join(dir, 'subuid'), gids: join(dir, 'subgid') },
    async run(_program, args) {
      if (args[0] === '--version') return `unshare from util-linux ${machine.version ?? '2.41'}`;
      if (machine.unshare === 'refused') throw new Error('unshare: write failed /proc/self/uid_map: Operation not permitted');
      return '';
    },
    async read(file) {
      const text = files[file];
      if (text === undefined) throw Object.assign(new Error(file), { code: 'ENOENT' });
      return text;
    },
    isProgram: async (file) => file.startsWith('/usr/bin/') && !(machine.missing ?? []).some((name) => file.endsWith(`/${name}`)),
    async resolve(path) {
      if (['/', '/srv', '/srv/data', '/home', ...(machine.dirs ?? [])].includes(path)) return path;
      throw Object.assign(new Error(path), { code: 'ENOENT' });
    },
  };
}

/** What fails on such a machine, by id. */
async function faults(machine: Machine, stateDir = '/home/state') {
  const failed = (await checkBubblewrap({ stateDir, host: host(machine) })).filter(({ ok }) => !ok);
  return Object.fromEntries(failed.map(({ id, detail, fix }) => [id, `${detail} | ${fix}`]));
}

describe('doctor names what is wrong and what mends it', () => {
  it('control: a machine that has everything has no fault', async () => {
    expect(await faults({})).toEqual({});
  });

  it('AppArmor restricts user namespaces', async () => {
    const files = { '/proc/sys/kernel/apparmor_restrict_unprivileged_userns': '1\n' };
    expect(await faults({ unshare: 'refused', files })).toEqual({
      'bubblewrap.user-namespaces': expect.stringMatching(/AppArmor .* \| sysctl -w kernel\.apparmor_restrict_unprivileged_userns=0/),
    });
    // The switch alone is no fault where the probe works: a profile permits it.
    expect(await faults({ files })).toEqual({});
  });

  it.each([
    ['/proc/sys/kernel/unprivileged_userns_clone', 'kernel.unprivileged_userns_clone=1'],
    ['/proc/sys/user/max_user_namespaces', 'user.max_user_namespaces=28633'],
  ])('%s forbids user namespaces', async (file, setting) => {
    expect(await faults({ unshare: 'refused', files: { [file]: '0\n' } })).toEqual({
      'bubblewrap.user-namespaces': expect.stringContaining(`sysctl -w ${setting}`),
    });
  });

  it('a container refuses them, and no switch says so', async () => {
    expect(await faults({ unshare: 'refused' })).toEqual({
      'bubblewrap.user-namespaces': expect.stringMatching(/Operation not permitted \| run outside a container/),
    });
  });

  it('the user has no range of subordinate ids, or one that is too small', async () => {
    for (const table of ['', 'kernel:100000:3\n', 'somebody:100000:65536\n']) {
      writeFileSync(join(dir, 'subuid'), table);
      expect(await faults({})).toEqual({
        'bubblewrap.sub-ids': expect.stringMatching(
          /no range of subordinate ids \| usermod --add-subuids \d+-\d+ --add-subgids \d+-\d+ kernel$/,
        ),
      });
    }
  });

  it('the state directory lies on a file system mounted noexec, also when it does not exist yet', async () => {
    const fault = { 'bubblewrap.state-exec': expect.stringMatching(/mounted noexec \| .*--state DIR/) };
    expect(await faults({ dirs: ['/srv/data/state'] }, '/srv/data/state')).toEqual(fault);
    expect(await faults({}, '/srv/data/state/deeper')).toEqual(fault);
    expect(await faults({}, '/home/state')).toEqual({});
  });

  it.each([
    ['bwrap', 'apt-get install bubblewrap'],
    ['newuidmap', 'apt-get install uidmap'],
    ['setpriv', 'apt-get install util-linux'],
  ])('%s is not installed', async (program, fix) => {
    expect(await faults({ missing: [program] })).toEqual({ [`bubblewrap.${program}`]: `${program} is not installed | ${fix}` });
  });

  it('util-linux is too old', async () => {
    expect(await faults({ version: '2.37.2' })).toEqual({
      'bubblewrap.unshare-version': 'util-linux 2.37, needed 2.38 | upgrade util-linux',
    });
  });
});

describe('docker', () => {
  const machine = (info: Partial<CommandResult>, installed = true): SetupHost => ({
    env: {},
    which: (program) => (installed && program === 'docker' ? '/usr/bin/docker' : undefined),
    run: async () => ({ code: 0, stdout: '', stderr: '', ...info }),
    privilege: async () => [],
  });
  const check = async (info: Partial<CommandResult>, installed = true) => (await checkDocker(machine(info, installed)))[0];

  it('control: a daemon of this machine is good', async () => {
    expect(await check({ stdout: 'Debian GNU/Linux 12 20.10.24\n' })).toMatchObject({
      ok: true,
      detail: expect.stringContaining('Debian'),
    });
  });

  it('Docker Desktop is told, with the daemon that would do', async () => {
    expect(await check({ stdout: 'Docker Desktop 27.0.3\n' })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('virtual machine'),
      fix: expect.stringContaining('docker context use default'),
    });
  });

  it('a daemon that does not run, one that may not be asked, and none at all', async () => {
    expect(await check({ code: 1, stderr: 'Cannot connect to the Docker daemon' })).toMatchObject({
      ok: false,
      fix: 'systemctl start docker',
    });
    expect(await check({ code: 1, stderr: 'dial unix: permission denied' })).toMatchObject({
      ok: false,
      fix: expect.stringContaining('usermod -aG docker'),
    });
    expect(await check({}, false)).toMatchObject({ ok: false, fix: 'apt-get install docker.io' });
  });
});
