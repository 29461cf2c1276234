import type { Owner } from '../../core/ids.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import type { Measurable } from '../../core/measure.ts';
import { uniqueMemory } from './process-memory.ts';
import type { UsageReply, WatchedReply } from './protocol.ts';
import { runTurn, type TurnRequest } from './turn.ts';

/** Between two samples of a watched turn. A sample costs a few milliseconds, which is why no watched turn is timed. */
const SAMPLE_EVERY_MS = 10;

/** What this kernel process and the sandbox it keeps for `owner` hold right now. */
export async function readUsage(kernel: Measurable, owner: Owner): Promise<UsageReply> {
  const { sandboxes, membrane } = await kernel.measure();
  const own = sandboxes.filter((sandbox) => sandbox.tenant === owner.tenant && sandbox.user === owner.user);
  return {
    kernelBytes: (await uniqueMemory(process.pid)) ?? 0,
    sandboxBytes: own.reduce((sum, sandbox) => sum + sandbox.memoryBytes, 0),
    processes: 1 + own.reduce((sum, sandbox) => sum + sandbox.processes, 0),
    connections: membrane.connections,
  };
}

/** The usage before and during one turn; `active` holds the highest total of memory with its two parts, and the highest counts. */
export async function watchedTurn(kernel: KernelOperations & Measurable, turn: TurnRequest): Promise<WatchedReply> {
  const idle = await readUsage(kernel, turn);
  let active = idle;
  let running = true;
  const watching = (async () => {
    while (running) {
      active = highest(active, await readUsage(kernel, turn));
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_EVERY_MS));
    }
  })();
  try {
    const sample = await runTurn(kernel, turn);
    running = false;
    await watching;
    return { sample, idle, active };
  } finally {
    running = false;
  }
}

function highest(a: UsageReply, b: UsageReply): UsageReply {
  const { kernelBytes, sandboxBytes } = a.kernelBytes + a.sandboxBytes >= b.kernelBytes + b.sandboxBytes ? a : b;
  return {
    kernelBytes,
    sandboxBytes,
    processes: Math.max(a.processes, b.processes),
    connections: Math.max(a.connections, b.connections),
  };
}
