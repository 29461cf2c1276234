import { readdir, readFile } from 'node:fs/promises';
import type { Clock } from '../../../core/seams/clock.ts';

const POLL_MS = 5;

/** A process that is named beyond doubt: ids are reused, an id with its start time is not (within one boot). */
export interface ProcessRef {
  readonly pid: number;
  /** Field 22 of proc_pid_stat(5), clock ticks since boot. */
  readonly startTicks: string;
}

/**
 * Undefined when there is no such process, or only its zombie: a zombie init has no process left in its namespace. One whose main thread alone
 * has ended looks like a zombie and lives.
 */
export async function findProcess(pid: number): Promise<ProcessRef | undefined> {
  const stat = await readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command name may hold spaces and brackets; what follows its last bracket does not.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTicks = fields[19];
  const dead = (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1;
  return startTicks === undefined || dead ? undefined : { pid, startTicks };
}

export async function isAlive(ref: ProcessRef): Promise<boolean> {
  return (await findProcess(ref.pid))?.startTicks === ref.startTicks;
}

/** Sends SIGKILL to exactly this process; false when it is gone already. */
export async function killProcess(ref: ProcessRef): Promise<boolean> {
  if (!(await isAlive(ref))) return false;
  try {
    return process.kill(ref.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Resolves when the process is gone. The system has no event for another's child, so this looks every few milliseconds. */
export async function untilGone(ref: ProcessRef, clock: Clock): Promise<void> {
  while (await isAlive(ref)) await new Promise<void>((wake) => clock.after(POLL_MS, wake));
}

/** `root` and all its descendants. Of a sandbox's init that is its whole pid namespace, because orphans are handed to it. */
export async function processTree(root: number): Promise<readonly number[]> {
  const found = [root];
  for (let i = 0; i < found.length; i += 1) {
    const tasks = `/proc/${found[i]}/task`;
    for (const task of await listProc(tasks)) {
      const children = (await readProc(`${tasks}/${task}/children`)) ?? '';
      for (const child of children.split(' ')) if (child !== '') found.push(Number(child));
    }
  }
  return found;
}

/** Memory that would be free if the process ended: Private_Clean + Private_Dirty of smaps_rollup. 0 when it is gone. */
export async function uniqueMemoryBytes(pid: number): Promise<number> {
  const rollup = (await readProc(`/proc/${pid}/smaps_rollup`)) ?? '';
  let kib = 0;
  for (const match of rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)) kib += Number(match[1]);
  return kib * 1024;
}

/** Process ids mean nothing after a restart of the machine. */
export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

async function readProc(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

async function listProc(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ESRCH';
}
