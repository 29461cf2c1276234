import { execFile } from 'node:child_process';
import { access, constants, readFile, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { PrerequisiteError } from '../../../core/errors.ts';
import type { Check } from '../check.ts';
import { HOST_ENV } from '../host-env.ts';
import { currentUser, type KernelUser, readSubIds, sliceCount } from '../slices.ts';

const run = promisify(execFile);

/** Programs the engine starts, and the Debian package of each. util-linux brings the second line of them. */
const PROGRAMS = {
  bwrap: 'bubblewrap',
  newuidmap: 'uidmap',
  newgidmap: 'uidmap',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  mount: 'mount',
  bash: 'bash',
} as const;

const UNSHARE_AT_LEAST = [2, 38] as const;
/** Switches of the system kernel that keep an ordinary user from making a user namespace, the value that does, and what turns it off. */
const USERNS_SWITCHES = [
  {
    file: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    refusing: '1',
    detail: 'AppArmor restricts user namespaces',
    fix: 'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with `userns,` for unshare and bwrap',
  },
  {
    file: '/proc/sys/kernel/unprivileged_userns_clone',
    refusing: '0',
    detail: 'user namespaces are for root only',
    fix: 'sysctl -w kernel.unprivileged_userns_clone=1',
  },
  {
    file: '/proc/sys/user/max_user_namespaces',
    refusing: '0',
    detail: 'no user namespace may be made',
    fix: 'sysctl -w user.max_user_namespaces=28633',
  },
] as const;

/** The machine as the checks see it; tests stand in for it. */
export interface CheckedHost {
  readonly user: KernelUser;
  readonly subIds: { readonly uids: string; readonly gids: string };
  /** Standard output of a program. @throws when it fails or is not there */
  run(program: string, args: readonly string[]): Promise<string>;
  /** Text of a file. @throws when it cannot be read */
  read(file: string): Promise<string>;
  /** Whether this user may run it. */
  isProgram(file: string): Promise<boolean>;
  /** As realpath(3). @throws with code `ENOENT` when nothing is there */
  resolve(path: string): Promise<string>;
}

export const checkedHost = (): CheckedHost => ({
  user: currentUser(),
  subIds: { uids: '/etc/subuid', gids: '/etc/subgid' },
  run: async (program, args) => (await run(program, [...args], { env: HOST_ENV })).stdout,
  read: (file) => readFile(file, 'utf8'),
  isProgram: (file) =>
    access(file, constants.X_OK).then(
      () => true,
      () => false,
    ),
  resolve: (path) => realpath(path),
});

/**
 * What this machine and this user must have for the bubblewrap engine; nothing is changed.
 * @param options - `stateDir` need not exist yet: the directory it would be made in is looked at then
 */
export async function checkBubblewrap(options: { readonly stateDir?: string; readonly host?: CheckedHost } = {}): Promise<Check[]> {
  const { stateDir, host = checkedHost() } = options;
  return Promise.all([
    ...Object.entries(PROGRAMS).map(([name, debian]) => checkProgram(host, name, debian)),
    checkUnshareVersion(host),
    checkSubIds(host),
    checkUserNamespaces(host),
    ...(stateDir === undefined ? [] : [checkExecutable(host, stateDir)]),
  ]);
}

async function checkProgram(host: CheckedHost, name: string, debian: string): Promise<Check> {
  for (const dir of HOST_ENV.PATH?.split(':') ?? []) {
    if (await host.isProgram(`${dir}/${name}`)) return { id: `bubblewrap.${name}`, ok: true, detail: `${dir}/${name}` };
  }
  return { id: `bubblewrap.${name}`, ok: false, detail: `${name} is not installed`, fix: `apt-get install ${debian}` };
}

async function checkUnshareVersion(host: CheckedHost): Promise<Check> {
  const id = 'bubblewrap.unshare-version';
  const found = await host.run('unshare', ['--version']).then(
    (stdout) => /(\d+)\.(\d+)/.exec(stdout),
    () => null,
  );
  const [major = 0, minor = 0] = found === null ? [] : [Number(found[1]), Number(found[2])];
  const ok = major > UNSHARE_AT_LEAST[0] || (major === UNSHARE_AT_LEAST[0] && minor >= UNSHARE_AT_LEAST[1]);
  const detail = `util-linux ${major}.${minor}, needed ${UNSHARE_AT_LEAST.join('.')}`;
  return ok ? { id, ok, detail } : { id, ok, detail, fix: 'upgrade util-linux' };
}

async function checkSubIds({ user, subIds }: CheckedHost): Promise<Check> {
  const id = 'bubblewrap.sub-ids';
  try {
    return { id, ok: true, detail: `enough for ${sliceCount(await readSubIds(user, subIds))} users` };
  } catch (error) {
    if (!(error instanceof PrerequisiteError)) throw error;
    return { id, ok: false, detail: error.message, ...(error.hint === undefined ? {} : { fix: error.hint }) };
  }
}

/** Makes the kind of user namespace that the engine makes, and uses a capability in it: AppArmor's restriction takes those away. */
async function checkUserNamespaces(host: CheckedHost): Promise<Check> {
  const id = 'bubblewrap.user-namespaces';
  try {
    await host.run('unshare', ['--map-root-user', '--mount', '--net', 'true']);
    return { id, ok: true, detail: 'permitted' };
  } catch (error) {
    for (const { file, refusing, detail, fix } of USERNS_SWITCHES) {
      if ((await host.read(file).catch(() => '')).trim() === refusing) return { id, ok: false, detail, fix };
    }
    // In a container it is the container's own wall that refuses.
    const fix = 'run outside a container, or give the container user namespaces (seccomp and AppArmor profiles that permit them)';
    return { id, ok: false, detail: String((error as Error).message).trim(), fix };
  }
}

/** Programs of a workspace must be able to run: its file system may not be mounted noexec. */
async function checkExecutable(host: CheckedHost, stateDir: string): Promise<Check> {
  const id = 'bubblewrap.state-exec';
  const refused = isNoexec(await host.read('/proc/self/mountinfo'), await nearest(host, stateDir));
  return refused
    ? {
        id,
        ok: false,
        detail: `${stateDir} lies on a file system mounted noexec`,
        fix: 'choose another state directory: --state DIR, or stateDir in the configuration file',
      }
    : { id, ok: true, detail: stateDir };
}

/** The real path of what there is of `path`: the directory itself, or the one it would be made in. */
async function nearest(host: CheckedHost, path: string): Promise<string> {
  try {
    return await host.resolve(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    return nearest(host, dirname(path));
  }
}

/** Whether the mount that `path` lies on is noexec, by the text of proc_pid_mountinfo(5). The last of equals is on top. */
export function isNoexec(mountinfo: string, path: string): boolean {
  let best = { length: -1, options: '' };
  for (const line of mountinfo.split('\n')) {
    const [, , , , point, options] = line.split(' ');
    if (point === undefined || options === undefined) continue;
    const above = point === '/' || path === point || path.startsWith(`${point}/`);
    if (above && point.length >= best.length) best = { length: point.length, options };
  }
  return best.options.split(',').includes('noexec');
}
