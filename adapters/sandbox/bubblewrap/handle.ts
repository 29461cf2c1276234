import type { Clock } from '../../../core/seams/clock.ts';
import type { SandboxHandle } from '../../../core/seams/sandbox-engine.ts';
import type { Launched } from './launch.ts';
import { killProcess, processTree, uniqueMemoryBytes, untilGone } from './processes.ts';

/**
 * One running sandbox. `forget` removes what the engine kept for it, once no process is left.
 *
 * `usage` counts as memory what would be free if the sandbox ended: private pages of its processes and of bubblewrap's own process on the
 * host. Not in it: pages shared with others (Node's text), and files in its temporary file systems. `processes` are those inside.
 */
export function sandboxHandle(generation: string, launched: Launched, clock: Clock, forget: () => Promise<void>): SandboxHandle {
  let stopped = false;
  const finish = async () => {
    const { code, signal } = await launched.exited;
    // Bubblewrap reaps the init, which the system lets die last; if something killed bubblewrap itself, the init is still dying.
    await untilGone(launched.init, clock);
    await forget();
    const how = signal === null ? `exit ${code}` : signal;
    return { reason: stopped ? 'stopped' : `guest ended (${how}) ${launched.output().trim().slice(-500)}`.trim() };
  };
  const ended = finish();
  return {
    generation,
    ended,
    async stop() {
      stopped = true;
      await killProcess(launched.init);
      await ended;
    },
    async usage() {
      const inside = await processTree(launched.init.pid);
      const memory = await Promise.all([launched.monitor.pid, ...inside].map(uniqueMemoryBytes));
      return { memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0), processes: inside.length };
    },
  };
}
