import { execFileSync, fork } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addSubIdsCommand, findRange, type IdMapping, type KernelUser, SLICE_GIDS } from '../../adapters/sandbox/slices.ts';
import type { SandboxLimits } from '../../core/config.ts';
import { delegateTo } from './delegated-group.ts';

/** Takes one guard out of the engine's own plan, so that a control can show that an attack needs exactly that guard gone. */
export interface Weakening {
  /** Arguments of bubblewrap left out, by their text. */
  readonly without?: readonly string[];
  /** Arguments (of bubblewrap, and of what runs in front of it) replaced by their text. */
  readonly replace?: { readonly [argument: string]: readonly string[] };
  /** Further arguments of bubblewrap, in front. */
  readonly first?: readonly string[];
  /** A command in front of all others. */
  readonly before?: readonly string[];
  readonly uidMap?: readonly IdMapping[];
  readonly limits?: { readonly [name: string]: number };
  readonly command?: readonly string[];
  readonly writableSocketDir?: boolean;
  /** Leaves open what the kernel process inherited. */
  readonly keepInherited?: boolean;
  /** Leaves the sandbox in the kernel's own session, with its terminal. */
  readonly kernelSession?: boolean;
  readonly socketModes?: { readonly directory: number; readonly socket: number };
}

export type KernelRequest =
  | {
      readonly op: 'start';
      readonly generation: string;
      readonly slice: number;
      readonly token: string;
      readonly weakening?: Weakening;
      readonly paths?: { readonly workspaceDir: string };
    }
  | { readonly op: 'evaluate'; readonly generation: string; readonly code: string }
  | { readonly op: 'stop' | 'ended' | 'usage'; readonly generation: string }
  | { readonly op: 'prepareSocketDir'; readonly socketDir: string; readonly slice: number }
  | { readonly op: 'sweep' | 'lookAtDisk' };

/** A failure of the kernel process, with the code it had there. */
export class KernelFailure extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface ToolResult {
  readonly pid: number;
  readonly code: number | null;
  readonly signal?: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ToolOptions {
  readonly uid?: number;
  readonly gid?: number;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: { readonly [name: string]: string };
  /** Answers as soon as the output has this text; the command lives on. */
  readonly until?: string;
}

/** One sandbox as a test sees it. */
export interface TestSandbox {
  readonly generation: string;
  /** What the guest read on descriptor 3. */
  readonly hello: string;
  readonly initPid: number | null;
  /** Runs the body of an async function in the guest, at the executor uid. It sees `tool`, `require`, `firstGid`. */
  executor<T = unknown>(code: string): Promise<T>;
  tool(argv: readonly string[], options?: ToolOptions): Promise<ToolResult>;
  stop(): Promise<void>;
  ended(): Promise<{ readonly reason: string }>;
  usage(): Promise<{ readonly memoryBytes: number; readonly processes: number }>;
}

export interface TestKernel extends AsyncDisposable {
  readonly user: KernelUser;
  readonly pid: number;
  readonly stateDir: string;
  start(options?: { slice?: number; weakening?: Weakening; token?: string; paths?: { workspaceDir: string } }): Promise<TestSandbox>;
  prepareSocketDir(socketDir: string, slice: number): Promise<void>;
  sweep(): Promise<void>;
  /** The look at quota and reserve that a timer takes otherwise. */
  lookAtDisk(): Promise<void>;
  /** As a crash: SIGKILL to the kernel process. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** An init that outlives its guest. */
export const UNDYING_INIT = [
  '/bin/sh',
  '-c',
  'echo up >&4; exec 4>&-; /opt/outwork/node /opt/outwork/guest.cjs & exec 3<&-; wait $!; while :; do sleep 1000; done',
] as const;

const GUEST = fileURLToPath(new URL('./sandbox-guest.cjs', import.meta.url));
const KERNEL = fileURLToPath(new URL('./sandbox-kernel.ts', import.meta.url));
const ORDINARY = 'outwork-test';

/**
 * Who the engine is tested as: root and an ordinary user when the tests run as root (the user is made, with a range of ids, when it is
 * missing), else the user who runs them.
 */
export function kernelUsers(): readonly KernelUser[] {
  const self = { uid: userInfo().uid, name: userInfo().username };
  if (self.uid !== 0) return [self];
  if (!readFileSync('/etc/passwd', 'utf8').includes(`\n${ORDINARY}:`)) {
    execFileSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', ORDINARY]);
  }
  const ordinary = { uid: Number(execFileSync('id', ['-u', ORDINARY], { encoding: 'utf8' })), name: ORDINARY };
  for (const user of [self, ordinary]) giveSubIds(user);
  return [self, ordinary];
}

function giveSubIds(user: KernelUser): void {
  const tables = ['/etc/subuid', '/etc/subgid'].map((file) => readFileSync(file, 'utf8'));
  if (tables.every((table) => findRange(table, user, SLICE_GIDS) !== undefined)) return;
  const [command, ...args] = addSubIdsCommand(user, tables);
  execFileSync(command as string, args);
}

/** A descriptor that the kernel process gets from whoever started it, above a gap, as a shell or a service manager may leave one. */
export interface InheritedDescriptor {
  readonly number: number;
  readonly fd: number;
}

function inheritedStdio(inherited: InheritedDescriptor | undefined): ('ignore' | number)[] {
  return inherited === undefined ? [] : [...Array<'ignore'>(inherited.number - 4).fill('ignore'), inherited.fd];
}

let generations = 0;

/** Starts a kernel process as `user` on a state directory of its own, or on one that an earlier kernel left. */
export async function openKernel(
  user: KernelUser,
  stateDir = makeStateDir(user),
  inherited?: InheritedDescriptor,
  limits: Partial<SandboxLimits> = {},
): Promise<TestKernel> {
  const child = fork(KERNEL, [stateDir, GUEST, JSON.stringify(limits)], {
    ...(user.uid === process.getuid?.() ? {} : { uid: user.uid, gid: Number(execFileSync('id', ['-g', user.name], { encoding: 'utf8' })) }),
    // The secret stands for the master key: the kernel has it, and nothing inside may.
    env: { PATH: process.env.PATH ?? '', OUTWORK_TEST_SECRET: 'kernel-only-secret' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...inheritedStdio(inherited)],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  // Without groups of its own an ordinary user bounds no memory and no processes: it gets them as a service manager would give them.
  const delegated = user.uid === 0 ? undefined : delegateTo(user, child.pid as number);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let sequence = 0;
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code) => reject(new Error(`the kernel process ended with ${code}`)));
  });
  child.on('message', ({ id, value, error }: { id: number; value: unknown; error?: { code: string; message: string } }) => {
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(new KernelFailure(error.code, error.message));
  });
  void exited.then(() => {
    for (const { reject } of waiting.values()) reject(new KernelFailure('kernel_gone', 'the kernel process is gone'));
  });
  const ask = <T>(request: KernelRequest): Promise<T> =>
    new Promise((resolve, reject) => {
      sequence += 1;
      waiting.set(sequence, { resolve: (value) => resolve(value as T), reject });
      child.send({ id: sequence, request });
    });

  const kernel: TestKernel = {
    user,
    pid: child.pid as number,
    stateDir,
    async start({ slice = 0, token = 'token-on-three', weakening, paths } = {}) {
      generations += 1;
      const generation = `g${process.pid}x${generations}`;
      const started = await ask<{ hello: string; initPid: number | null }>({
        ...{ op: 'start', generation, slice, token },
        ...(weakening === undefined ? {} : { weakening }),
        ...(paths === undefined ? {} : { paths }),
      });
      return {
        generation,
        ...started,
        executor: (code) => ask({ op: 'evaluate', generation, code }),
        tool: (argv, options = {}) =>
          ask({ op: 'evaluate', generation, code: `return tool(${JSON.stringify(argv)}, ${JSON.stringify(options)})` }),
        stop: () => ask({ op: 'stop', generation }),
        ended: () => ask({ op: 'ended', generation }),
        usage: () => ask({ op: 'usage', generation }),
      };
    },
    prepareSocketDir: (socketDir, slice) => ask({ op: 'prepareSocketDir', socketDir, slice }),
    sweep: () => ask({ op: 'sweep' }),
    lookAtDisk: () => ask({ op: 'lookAtDisk' }),
    async crash() {
      child.kill('SIGKILL');
      await exited;
    },
    async close() {
      if (child.connected) child.disconnect();
      await exited;
      await delegated?.remove();
      removeStateDir(stateDir);
    },
    [Symbol.asyncDispose]: () => kernel.close(),
  };
  return kernel;
}

/** What sandboxes made below it belongs to subordinate ids, which an ordinary user removes in a user namespace of its own. */
function removeStateDir(dir: string): void {
  if (process.getuid?.() === 0) rmSync(dir, { recursive: true, force: true });
  else execFileSync('unshare', ['--map-auto', '--map-root-user', 'rm', '-rf', '--', dir]);
}

/** Short, because a socket path has little room. */
export function makeStateDir(user: KernelUser): string {
  const dir = mkdtempSync(join('/tmp', 'ow-'));
  chmodSync(dir, 0o700);
  if (process.getuid?.() === 0) chownSync(dir, user.uid, user.uid);
  return dir;
}
