import { type ChildProcess, execFile, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { SandboxError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import { HOST_ENV } from '../host-env.ts';
import type { IdMapping } from '../slices.ts';
import { keepTail } from './diagnostics.ts';
import { openEngineLine } from './engine-line.ts';
import type { SandboxPlan } from './plan.ts';
import { findProcess, killProcess, type ProcessRef, processTree } from './processes.ts';
import { ENGINE_FD, STATUS_FD, TOKEN_FD } from './stage.ts';

const run = promisify(execFile);

export interface Launched {
  /** Bubblewrap on the host; our child. It ends when the init has ended and the pid namespace is empty. */
  readonly monitor: ProcessRef;
  /** PID 1 of the sandbox, as the host sees it. */
  readonly init: ProcessRef;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** The last lines that init and guest wrote, for error messages only. Untrusted text. */
  output(): string;
}

/**
 * Starts what `plan` describes. Resolves when PID 1 runs on the finished mounts; the guest is then being started. `join` puts the process
 * that everything else is started by into its control groups, before anything of the sandbox runs.
 *
 * @throws SandboxError `start_failed`, `timeout`; nothing is left running
 */
export async function launch(
  plan: SandboxPlan,
  token: string,
  clock: Clock,
  withinMs: number,
  join: (pid: number) => Promise<void> = async () => {},
): Promise<Launched> {
  const child = spawn('unshare', commandLine(plan), {
    env: HOST_ENV,
    cwd: '/',
    // An interrupt typed at the kernel's terminal is then the kernel's to handle, too.
    detached: plan.ownSession,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const exited = ended(child);
  const output = keepTail([child.stdout, child.stderr], clock);
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(withinMs, () => {
    late.reject(new SandboxError('timeout', `the sandbox did not start within ${withinMs} ms`, { retryable: true }));
  });
  try {
    return { ...(await Promise.race([handshake(child, plan, token, join), late.promise])), exited, output };
  } catch (cause) {
    await abandon(child, exited);
    if (cause instanceof SandboxError) throw cause;
    throw new SandboxError('start_failed', `the sandbox did not start: ${output().trim() || String(cause)}`, { cause });
  } finally {
    cancel();
  }
}

async function handshake(
  child: ChildProcess,
  plan: SandboxPlan,
  token: string,
  join: (pid: number) => Promise<void>,
): Promise<Pick<Launched, 'monitor' | 'init'>> {
  const pid = child.pid;
  if (pid === undefined) throw new Error('unshare could not be started');
  // A guest may end without reading: the token then has no reader, which is no error of ours.
  pipe(child, TOKEN_FD)
    .on('error', () => {})
    .end(token);
  const line = openEngineLine(pipe(child, ENGINE_FD));
  // The system may take some milliseconds to move a process: they pass while the first stage, which forks nothing yet, starts and waits.
  const joined = join(pid);
  joined.catch(() => {});
  await line.hear('unshared');
  const [monitor] = await Promise.all([
    findProcess(pid),
    run('newuidmap', mapping(pid, plan.uidMap), { env: HOST_ENV }),
    run('newgidmap', mapping(pid, plan.gidMap), { env: HOST_ENV }),
    joined,
  ]);
  line.say('mapped');
  await line.hear('up');
  const initPid = line.initPid();
  if (monitor === undefined || initPid === undefined) throw new Error('ended at once');
  return { monitor, init: (await findProcess(initPid)) ?? gone(initPid) };
}

/** A process that was up and has ended since: no process has this start. */
const gone = (pid: number): ProcessRef => ({ pid, startTicks: 'gone' });

function commandLine(plan: SandboxPlan): string[] {
  const limits = Object.entries(plan.limits).map(([name, value]) => `${name}=${value}`);
  const env = Object.entries(plan.env).flatMap(([name, value]) => ['--setenv', name, value]);
  const { image, nodeDir, socketDir, workspaceParent, homeParent } = plan.staged;
  return [
    ...['--user', '--mount', '--keep-caps', '--', '/bin/bash', '-c', plan.stages.unmapped, 'stage', limits.join(' ')],
    ...[image, nodeDir, socketDir, workspaceParent, homeParent],
    ...plan.before,
    ...['/bin/sh', '-c', plan.stages.mount, 'stage'],
    ...['bwrap', '--json-status-fd', String(STATUS_FD), '--clearenv', ...env, ...plan.bubblewrap, '--', ...plan.command],
  ];
}

const mapping = (pid: number, map: readonly IdMapping[]): string[] => [
  String(pid),
  ...map.flatMap(({ inside, outside, count }) => [String(inside), String(outside), String(count)]),
];

/** Ends a half-made sandbox, from the leaves up: until its last step bubblewrap has not tied the init to its own life. */
async function abandon(child: ChildProcess, exited: Launched['exited']): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    for (const pid of [...(await processTree(child.pid))].reverse()) {
      const found = await findProcess(pid);
      if (found !== undefined) await killProcess(found);
    }
  }
  await exited;
}

/** Our end of one of the child's further descriptors; Node's types know five. */
const pipe = (child: ChildProcess, fd: number): Duplex => (child.stdio as unknown as Duplex[])[fd] as Duplex;

function ended(child: ChildProcess): Launched['exited'] {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ code: null, signal: null }));
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
}
