import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProcess, isAlive, type ProcessRef, processTree } from '../../adapters/sandbox/bubblewrap/processes.ts';
import { openRecords } from '../../adapters/sandbox/bubblewrap/records.ts';
import type { TestKernel, TestSandbox } from './sandbox-client.ts';

/** Every live process of a sandbox as the host names it. */
export async function processesOf(sandbox: TestSandbox, kernel: TestKernel): Promise<readonly ProcessRef[]> {
  const record = (await openRecords(join(kernel.stateDir, 'sandboxes')).list()).find(({ generation }) => generation === sandbox.generation);
  const init = record?.record?.init.pid ?? sandbox.initPid;
  if (init === undefined || init === null) throw new Error('the sandbox has no record');
  return named(await processTree(init));
}

/** Every live process that one has started, and those that they have started. */
export const processesBelow = async (pid: number): Promise<readonly ProcessRef[]> => named((await processTree(pid)).slice(1));

async function named(pids: readonly number[]): Promise<readonly ProcessRef[]> {
  const found = await Promise.all(pids.map(findProcess));
  return found.filter((process) => process !== undefined);
}

/** Process ids of this machine with their arguments; one that ends meanwhile is left out. */
export function* allArguments(): Generator<{ readonly pid: number; readonly argv: readonly string[] }> {
  for (const pid of readdirSync('/proc').map(Number).filter(Boolean)) {
    try {
      yield { pid, argv: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0') };
    } catch {
      // It ended while we looked.
    }
  }
}

export async function survivors(processes: readonly ProcessRef[]): Promise<readonly ProcessRef[]> {
  const alive = await Promise.all(processes.map(isAlive));
  return processes.filter((_, i) => alive[i]);
}
