import { join } from 'node:path';
import { findProcess, isAlive, type ProcessRef, processTree } from '../../adapters/sandbox/bubblewrap/processes.ts';
import { openRecords } from '../../adapters/sandbox/bubblewrap/records.ts';
import type { TestKernel, TestSandbox } from './sandbox-client.ts';

/** Every live process of a sandbox as the host names it. */
export async function processesOf(sandbox: TestSandbox, kernel: TestKernel): Promise<readonly ProcessRef[]> {
  const record = (await openRecords(join(kernel.stateDir, 'sandboxes')).list()).find(({ generation }) => generation === sandbox.generation);
  const init = record?.record?.init.pid ?? sandbox.initPid;
  if (init === undefined || init === null) throw new Error('the sandbox has no record');
  const found = await Promise.all((await processTree(init)).map(findProcess));
  return found.filter((process) => process !== undefined);
}

export async function survivors(processes: readonly ProcessRef[]): Promise<readonly ProcessRef[]> {
  const alive = await Promise.all(processes.map(isAlive));
  return processes.filter((_, i) => alive[i]);
}
