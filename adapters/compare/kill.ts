import type { KernelEvent } from '../../core/events.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { descendants } from './process-memory.ts';
import type { BegunReply, ResumedReply } from './protocol.ts';
import { endOf, lastCursor, readSample, type TurnRequest, waitForEvent } from './turn.ts';

/**
 * Starts a turn and answers once its run has completed a call. With `kill`, every process below this kernel process (its sandboxes, and in
 * them the executor) has then got SIGKILL: what a crash or the kernel's out-of-memory killer does.
 */
export async function beginTurn(kernel: KernelOperations, turn: TurnRequest, kill: boolean): Promise<BegunReply> {
  const { tenant, user, placement, body } = turn;
  const start = await lastCursor(kernel);
  const { run } = await kernel.post({ tenant, user, placement, body });
  const placed = await waitForEvent(kernel, start, (event) => event.run === run.id && event.type === 'run.placed', turn.limitMs);
  // Looked up before the moment of the kill: by the time it takes, a later call may have begun whose end nobody would know.
  const victims = kill ? await descendants(process.pid) : [];
  const ofRun = (event: KernelEvent): boolean => event.run === run.id && event.type === 'call.completed';
  const { cursor } = await waitForEvent(kernel, placed.cursor, ofRun, turn.limitMs);
  const atMs = Date.now();
  for (const pid of victims) endProcess(pid);
  return { run: run.id, cursor, atMs };
}

/** A process that has just ended by itself is no fault. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export async function resumeTurn(
  kernel: KernelOperations,
  resume: { readonly run: string; readonly cursor: number; readonly limitMs: number },
): Promise<ResumedReply> {
  const { run, cursor, limitMs } = resume;
  const claimed = await waitForEvent(
    kernel,
    cursor,
    (event) => event.run === run && (event.type === 'run.claimed' || endOf(event) !== undefined),
    limitMs,
  );
  const first = await waitForEvent(
    kernel,
    claimed.cursor - 1,
    (event) => event.run === run && (event.type === 'call.completed' || endOf(event) !== undefined),
    limitMs,
  );
  await waitForEvent(kernel, claimed.cursor - 1, (event) => event.run === run && endOf(event) !== undefined, limitMs);
  const sample = await readSample(kernel, run, 0);
  return { sample, atMs: first.type === 'call.completed' ? first.atMs : undefined };
}
