import { lstat, readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { SandboxSpec } from '../../../core/seams/sandbox-engine.ts';
import { type IdMapping, INSIDE, type Slice } from '../slices.ts';
import type { Image } from './image.ts';
import { MOUNT_STAGE, SECCOMP_FD, UNMAPPED_STAGE } from './stage.ts';

/** Fixed paths of a sandbox; guest, harnesses and recipes may rely on them. */
export const INSIDE_PATHS = {
  workspace: '/workspace',
  home: '/home/agent',
  socket: '/run/outwork/membrane.sock',
  private: '/run/outwork-private',
  approved: '/run/outwork-approved',
  node: '/opt/outwork/node',
  guest: '/opt/outwork/guest.cjs',
  init: '/opt/outwork/init.sh',
} as const;

/** The environment of PID 1 and the guest, whole. Nothing of the kernel's own environment is in it. */
export const GUEST_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: INSIDE_PATHS.home,
  LANG: 'C.UTF-8',
  OUTWORK_SOCKET: INSIDE_PATHS.socket,
  OUTWORK_TOOL_UID: String(INSIDE.toolUid),
  OUTWORK_GIDS: `${INSIDE.firstInvocationGid}-${INSIDE.firstInvocationGid + INSIDE.invocationGids - 1}`,
  OUTWORK_PRIVATE: INSIDE_PATHS.private,
};

/** What the executor keeps: change to a tool's ids, end tools, listen below port 1024. */
export const EXECUTOR_CAPABILITIES = ['setuid', 'setgid', 'kill', 'net_bind_service'] as const;

/**
 * Host directories a sandbox is made of. Bubblewrap runs with the slice's ids, which reach nothing below the kernel's 0700 directories, so
 * a stage with a mount namespace of its own, still as the kernel's user, binds each of them below `STAGED` first.
 */
export interface StagedPaths {
  readonly image: string;
  readonly nodeDir: string;
  readonly socketDir: string;
  /** Parents of the two roots: the kernel opens no directory that a sandbox owns. */
  readonly workspaceParent: string;
  readonly homeParent: string;
}

/** Where the stage puts them; every host has the directory, and only the stage sees what is mounted over it. */
export const STAGED = { image: '/tmp/image', nodeDir: '/tmp/node', socketDir: '/tmp/s', workspaces: '/tmp/w', homes: '/tmp/h' } as const;

/** Everything that decides what a sandbox is. A value, so that a test can weaken one part and show that the wall was that part. */
export interface SandboxPlan {
  readonly uidMap: readonly IdMapping[];
  readonly gidMap: readonly IdMapping[];
  /** Ceilings written to /proc/sys/user of the new user namespace, which nothing inside can raise again. */
  readonly limits: Readonly<Record<string, number>>;
  /** Whether it is put into a session of its own, away from the kernel's terminal. */
  readonly ownSession: boolean;
  /** The two shell programs of `stage.ts`. */
  readonly stages: { readonly unmapped: string; readonly mount: string };
  /** Commands that run in front of bubblewrap in the new user namespace, each executing the next. */
  readonly before: readonly string[];
  readonly staged: StagedPaths;
  readonly bubblewrap: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
}

/** Loaded by bubblewrap last of all, in what becomes PID 1: it holds for every process of the sandbox. */
export const SECCOMP_ARGUMENTS = ['--seccomp', String(SECCOMP_FD)] as const;

const MiB = 1024 * 1024;

export async function planSandbox(
  spec: Pick<SandboxSpec, 'socketDir' | 'workspaceDir' | 'homeDir'>,
  image: Image,
  slice: Slice,
  nodeBinary: string,
  limits: { readonly memoryMiB: number; readonly process: readonly string[] },
): Promise<SandboxPlan> {
  return {
    uidMap: slice.uidMap,
    gidMap: slice.gidMap,
    ownSession: true,
    stages: { unmapped: UNMAPPED_STAGE, mount: MOUNT_STAGE },
    limits: {
      // Namespaces: one of each for the sandbox itself and none for what runs in it.
      max_user_namespaces: 0,
      max_time_namespaces: 0,
      max_cgroup_namespaces: 1,
      max_ipc_namespaces: 1,
      max_mnt_namespaces: 1,
      max_net_namespaces: 1,
      max_pid_namespaces: 1,
      max_uts_namespaces: 1,
      // The kernel user's own allowance is charged too: a sandbox must not use it up (its file watching would fail).
      max_inotify_instances: 16,
      max_inotify_watches: 32_768,
      max_fanotify_groups: 4,
      max_fanotify_marks: 1024,
    },
    before: [
      'prlimit',
      ...limits.process,
      ...['setpriv', '--reuid=0', '--regid=0', '--clear-groups'],
      // bubblewrap needs its capabilities now; what it starts can never have more than the executor's.
      ...['--inh-caps=+all', `--bounding-set=-all,${EXECUTOR_CAPABILITIES.map((name) => `+${name}`).join(',')}`],
    ],
    staged: {
      image: image.dir,
      nodeDir: dirname(nodeBinary),
      socketDir: spec.socketDir,
      workspaceParent: dirname(spec.workspaceDir),
      homeParent: dirname(spec.homeDir),
    },
    bubblewrap: [...namespaces(), ...(await system(limits.memoryMiB * MiB)), ...own(image, nodeBinary), ...exchange(), ...roots(spec)],
    env: GUEST_ENV,
    command: ['/bin/sh', INSIDE_PATHS.init],
  };
}

function namespaces(): string[] {
  return [
    ...['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup'],
    ...['--hostname', 'sandbox', '--as-pid-1', '--new-session', '--die-with-parent'],
    ...['--cap-drop', 'ALL', ...EXECUTOR_CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name.toUpperCase()}`])],
    ...SECCOMP_ARGUMENTS,
  ];
}

/**
 * The host's programs and libraries, read-only; bubblewrap adds nosuid and nodev to every mount. Temporary files are memory: they may take
 * a good half of it, so that whoever fills them finds them full and the executor alive.
 */
async function system(memoryBytes: number): Promise<string[]> {
  const part = (most: number, share: number) => String(Math.min(most, Math.floor(memoryBytes / share)));
  const args: string[] = ['--ro-bind', '/usr', '/usr'];
  for (const dir of ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']) {
    const found = await lstat(dir).catch(() => undefined);
    if (found?.isSymbolicLink()) args.push('--symlink', await readlink(dir), dir);
    else if (found?.isDirectory()) args.push('--ro-bind', dir, dir);
  }
  return [
    ...args,
    ...['--proc', '/proc', '--dev', '/dev'],
    // bubblewrap's own modes would let the executor alone write here.
    ...['--perms', '1777', '--size', part(64 * MiB, 8), '--tmpfs', '/dev/shm'],
    ...['--perms', '1777', '--size', part(1024 * MiB, 2), '--tmpfs', '/tmp'],
    ...directory('/var'),
    ...['--symlink', '/tmp', '/var/tmp'],
    ...directory('/run'),
    ...directory('/opt'),
    ...directory('/home'),
  ];
}

/** Made directories get their mode said: parents that bubblewrap makes by itself may be closed to tools. */
const directory = (path: string): string[] => ['--perms', '0755', '--dir', path];

function own(image: Image, nodeBinary: string): string[] {
  return [
    ...['--ro-bind', `${STAGED.image}/etc`, '/etc'],
    ...image.hostEtc.flatMap((path) => ['--ro-bind', `/etc/${path}`, `/etc/${path}`]),
    ...['--ro-bind', `${STAGED.image}/opt`, '/opt/outwork'],
    // Every sandbox maps the kernel's own Node file, so its text is in memory once.
    ...['--ro-bind', join(STAGED.nodeDir, basename(nodeBinary)), INSIDE_PATHS.node],
  ];
}

/** The membrane socket below a directory that tools cannot enter and on a mount that the executor cannot change. */
function exchange(): string[] {
  return [
    ...['--perms', '0700', '--size', String(1 * MiB), '--tmpfs', '/run/outwork'],
    ...['--ro-bind', STAGED.socketDir, '/run/outwork/s'],
    ...['--symlink', 's/membrane.sock', INSIDE_PATHS.socket, '--remount-ro', '/run/outwork'],
    ...['--perms', '0700', '--size', String(64 * MiB), '--tmpfs', INSIDE_PATHS.private],
    // Tools may run what lies there, and the executor alone may put it there.
    ...['--perms', '0755', '--size', String(16 * MiB), '--tmpfs', INSIDE_PATHS.approved],
  ];
}

/** The two directories a sandbox may write, side by side; no mount is made at or below either. Last: the root itself is closed. */
function roots(spec: Pick<SandboxSpec, 'workspaceDir' | 'homeDir'>): string[] {
  return [
    ...['--bind', join(STAGED.workspaces, basename(spec.workspaceDir)), INSIDE_PATHS.workspace],
    ...['--bind', join(STAGED.homes, basename(spec.homeDir)), INSIDE_PATHS.home],
    ...['--remount-ro', '/', '--chdir', '/'],
  ];
}
