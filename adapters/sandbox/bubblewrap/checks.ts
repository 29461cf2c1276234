import { execFile } from 'node:child_process';
import { access, readFile, realpath } from 'node:fs/promises';
import { promisify } from 'node:util';
import { PrerequisiteError } from '../../../core/errors.ts';
import type { Check } from '../check.ts';
import { addSubIdsCommand, currentUser, type KernelUser, readSubIds, sliceCount } from '../slices.ts';
import { HOST_ENV } from './host-env.ts';

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
const APPARMOR = '/proc/sys/kernel/apparmor_restrict_unprivileged_userns';

/** What this machine and this user must have for the bubblewrap engine; nothing is changed. */
export async function checkBubblewrap(options: { readonly stateDir?: string } = {}): Promise<Check[]> {
  const user = currentUser();
  const checks = await Promise.all([
    ...Object.entries(PROGRAMS).map(([name, debian]) => checkProgram(name, debian)),
    checkUnshareVersion(),
    checkSubIds(user),
    checkUserNamespaces(),
    ...(options.stateDir === undefined ? [] : [checkExecutable(options.stateDir)]),
  ]);
  return checks;
}

/** Whether the user has a range of subordinate ids, and the command that `setup` runs as root when not. */
export async function ensureSubIds(
  user: KernelUser = currentUser(),
): Promise<{ readonly present: boolean; readonly command: readonly string[] }> {
  const present = await readSubIds(user).then(
    () => true,
    () => false,
  );
  const tables = await Promise.all(['/etc/subuid', '/etc/subgid'].map((file) => readFile(file, 'utf8').catch(() => '')));
  return { present, command: present ? [] : addSubIdsCommand(user, tables) };
}

async function checkProgram(name: string, debian: string): Promise<Check> {
  for (const dir of HOST_ENV.PATH?.split(':') ?? []) {
    if (
      await access(`${dir}/${name}`).then(
        () => true,
        () => false,
      )
    )
      return { id: `bubblewrap.${name}`, ok: true, detail: `${dir}/${name}` };
  }
  return { id: `bubblewrap.${name}`, ok: false, detail: `${name} is not installed`, fix: `apt-get install ${debian}` };
}

async function checkUnshareVersion(): Promise<Check> {
  const id = 'bubblewrap.unshare-version';
  const found = await run('unshare', ['--version'], { env: HOST_ENV }).then(
    ({ stdout }) => /(\d+)\.(\d+)/.exec(stdout),
    () => null,
  );
  const [major = 0, minor = 0] = found === null ? [] : [Number(found[1]), Number(found[2])];
  const ok = major > UNSHARE_AT_LEAST[0] || (major === UNSHARE_AT_LEAST[0] && minor >= UNSHARE_AT_LEAST[1]);
  const detail = `util-linux ${major}.${minor}, needed ${UNSHARE_AT_LEAST.join('.')}`;
  return ok ? { id, ok, detail } : { id, ok, detail, fix: 'upgrade util-linux' };
}

async function checkSubIds(user: KernelUser): Promise<Check> {
  const id = 'bubblewrap.sub-ids';
  try {
    return { id, ok: true, detail: `enough for ${sliceCount(await readSubIds(user))} users` };
  } catch (error) {
    if (!(error instanceof PrerequisiteError)) throw error;
    return { id, ok: false, detail: error.message, ...(error.hint === undefined ? {} : { fix: error.hint }) };
  }
}

/** Makes the kind of user namespace that the engine makes, and uses a capability in it: AppArmor's restriction takes those away. */
async function checkUserNamespaces(): Promise<Check> {
  const id = 'bubblewrap.user-namespaces';
  try {
    await run('unshare', ['--map-root-user', '--mount', '--net', 'true'], { env: HOST_ENV });
    return { id, ok: true, detail: 'permitted' };
  } catch (error) {
    const apparmor = (await readFile(APPARMOR, 'utf8').catch(() => '0')).trim() === '1';
    if (apparmor) {
      const fix = 'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with `userns,` for unshare and bwrap';
      return { id, ok: false, detail: 'AppArmor restricts user namespaces', fix };
    }
    return { id, ok: false, detail: String((error as Error).message).trim(), fix: 'sysctl -w user.max_user_namespaces=28633' };
  }
}

/** Programs of a workspace must be able to run: its file system may not be mounted noexec. */
async function checkExecutable(stateDir: string): Promise<Check> {
  const id = 'bubblewrap.state-exec';
  const refused = isNoexec(await readFile('/proc/self/mountinfo', 'utf8'), await realpath(stateDir));
  return refused
    ? { id, ok: false, detail: `${stateDir} lies on a file system mounted noexec`, fix: 'choose another state directory (--state)' }
    : { id, ok: true, detail: stateDir };
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
