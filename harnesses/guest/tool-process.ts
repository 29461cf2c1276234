import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { CommandPlan } from './command-plan.ts';
import { spawnFault } from './errors.ts';
import type { FifoEnds, FifoPool } from './fifo-pool.ts';
import type { GuestSettings } from './settings.ts';

/** A spawned tool and our ends of its streams. A chunk of output is good until its listener returns: the next one takes its place. */
export interface ToolProcess {
  readonly pid: number;
  readonly exited: Promise<ToolExit>;
  readonly stdout: Socket;
  readonly stderr: Socket | undefined;
  /** Gives up our ends of all three streams. */
  close(): void;
}

/** How the main process ended. `reason` is set when it never started. */
export interface ToolExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly reason?: string;
}

/**
 * Starts a tool as the tool uid with `gid` as its only group, in a session of its own, descriptors 0, 1 and 2 only.
 * `merge`: both streams into one. A program that is not there or not executable is an exit of 127 or 126, as in a shell.
 *
 * @throws GuestError `pids` when no process can be made, `io_failed`
 */
export async function spawnTool(
  deps: { settings: GuestSettings; fifos: FifoPool },
  plan: CommandPlan,
  how: { gid: number; stdin: string | undefined; merge: boolean },
): Promise<ToolProcess> {
  const text = how.stdin ?? '';
  const ways = ['output', ...(how.merge ? [] : ['output' as const]), ...(text === '' ? [] : ['input' as const])] as const;
  const ends = await deps.fifos.open(ways);
  const out = ends[0] as FifoEnds;
  const err = how.merge ? undefined : ends[1];
  const input = text === '' ? undefined : ends.at(-1);
  try {
    const started = await start(deps.settings, plan, how.gid, [input?.theirs ?? 'ignore', out.theirs, err?.theirs ?? out.theirs]);
    const stdout = readEnd(out.ours);
    const stderr = err && readEnd(err.ours);
    const stdin = input && writeEnd(input.ours).end(text);
    const close = () => {
      for (const stream of [stdout, stderr, stdin]) stream?.destroy();
    };
    return { ...started, stdout, stderr, close };
  } catch (error) {
    for (const end of ends) closeSync(end.ours);
    throw error;
  } finally {
    for (const end of ends) closeSync(end.theirs);
  }
}

/** What makes a program unable to start, as opposed to us. */
const PROGRAM_FAULTS = ['ENOENT', 'EACCES', 'ENOEXEC', 'E2BIG', 'EISDIR', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ETXTBSY', 'EINVAL'];

async function start(
  { toolUid }: GuestSettings,
  { argv, env, cwd }: CommandPlan,
  gid: number,
  stdio: [number | 'ignore', number, number],
): Promise<{ pid: number; exited: Promise<ToolExit> }> {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const [program, ...args] = argv;
  try {
    const child: ChildProcess = spawn(program, args, { cwd, env: { ...env }, uid: toolUid, gid, detached: true, stdio: [...stdio] });
    const exited = exitOf(child);
    exited.catch(() => undefined);
    if (child.pid === undefined) await exited;
    return { pid: child.pid ?? 0, exited };
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown';
    if (PROGRAM_FAULTS.includes(reason))
      return { pid: 0, exited: Promise.resolve({ code: reason === 'ENOENT' ? 127 : 126, signal: null, reason }) };
    throw spawnFault(error as Error, program);
  }
}

function exitOf(child: ChildProcess): Promise<ToolExit> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', reject);
  });
}

/** One read of a tool's output; a pipe holds as much. */
const READ_BYTES = 64 * 1024;

// Errors of a stream (a tool that does not read its input) are no errors of the call.

/** Reads into one buffer again and again: a tool that prints without end costs no more memory than one that prints little. */
function readEnd(fd: number): Socket {
  const { Socket } = process.getBuiltinModule('node:net');
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const onread = {
    buffer,
    callback(bytes: number): boolean {
      stream.emit('data', buffer.subarray(0, bytes));
      return true;
    },
  };
  const stream: Socket = new Socket({ fd, readable: true, writable: false, onread });
  stream.on('error', () => stream.destroy());
  return stream;
}

function writeEnd(fd: number): Socket {
  const { Socket } = process.getBuiltinModule('node:net');
  const stream = new Socket({ fd, readable: false, writable: true });
  stream.on('error', () => stream.destroy());
  return stream;
}
