import type { Clock } from '../../../core/seams/clock.ts';
import type { SandboxHandle } from '../../../core/seams/sandbox-engine.ts';
import type { SandboxGroup } from '../cgroup/groups.ts';
import type { Launched } from './launch.ts';
import { killProcess, processTree, uniqueMemoryBytes, untilGone } from './processes.ts';

export interface BubblewrapHandle extends SandboxHandle {
  stopForDisk(reason: string): Promise<void>;
}

/**
 * One running sandbox. `forget` removes what the engine kept for it, once no process is left.
 *
 * `usage` counts as memory what would be free if the sandbox ended: private pages of its processes and of bubblewrap's own process on the
 * host. Not in it: pages shared with others (Node's text), and files in its temporary file systems. `processes` are those inside.
 */
export function sandboxHandle(options: {
  readonly generation: string;
  readonly launched: Launched;
  readonly group: SandboxGroup;
  readonly clock: Clock;
  readonly forget: (how: 'stopped' | 'by itself') => Promise<void>;
  /** Something of it could not be removed: that changes nothing about its end. */
  readonly onLeft: (error: unknown) => void;
}): BubblewrapHandle {
  const { generation, launched, group, clock, forget, onLeft } = options;
  let stopped: { reason: string; code?: 'disk_full' } | undefined;
  const stop = async (why: { reason: string; code?: 'disk_full' }) => {
    stopped ??= why;
    await killProcess(launched.init);
    await ended;
  };
  const finish = async () => {
    const { code, signal } = await launched.exited;
    // Bubblewrap reaps the init, which the system lets die last; if something killed bubblewrap itself, the init is still dying.
    await untilGone(launched.init, clock);
    const oomKills = group.oomKills();
    await forget(stopped === undefined ? 'by itself' : 'stopped').catch(onLeft);
    if (stopped !== undefined) return stopped;
    const how = signal === null ? `exit ${code}` : signal;
    const memory = oomKills === 0 ? '' : ` after ${oomKills} of its processes were ended for want of memory`;
    return { reason: `guest ended (${how})${memory} ${launched.output().trim().slice(-500)}`.trim() };
  };
  const ended = finish();
  return {
    generation,
    ended,
    stop: () => stop({ reason: 'stopped' }),
    stopForDisk: (reason) => stop({ reason, code: 'disk_full' }),
    oomKills: async () => group.oomKills(),
    refusedProcesses: async () => group.refusedProcesses(),
    async usage() {
      const inside = await processTree(launched.init.pid);
      const memory = await Promise.all([launched.monitor.pid, ...inside].map(uniqueMemoryBytes));
      return { memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0), processes: inside.length };
    },
  };
}
