import type { Run } from './types.ts';

/** Answers "why is this run not moving" in one sentence: what has to happen next, and who does it. */
export function nextStep(run: Run, ahead: Run | undefined, nowMs: number): string {
  switch (run.state) {
    case 'queued':
      if (ahead !== undefined) return `waits for ${ahead.id} (${ahead.state}), which holds its thread`;
      return 'waits for a kernel to claim it: one must be running on this state directory, with room for another run';
    case 'running': {
      const left = (run.leaseUntilMs ?? 0) - nowMs;
      if (left <= 0) return `its lease by ${run.leaseHolder} is over: the next sweep puts it back into the queue`;
      return `attempt ${run.fence} works under a lease of ${run.leaseHolder} for ${Math.ceil(left / 1000)} more seconds`;
    }
    case 'cancelling':
      return 'its executor has been told to stop; it ends with the cancel grace at the latest';
    case 'parked':
      if (run.gate?.kind === 'unknown')
        return `a person says what became of ${run.gate.ref}: outwork runs resolve ${run.id} --as done|not-done|abort`;
      return `waits at its ${run.gate?.kind} gate (${run.gate?.ref}): ${run.gate?.reason}`;
    case 'completed':
    case 'cancelled':
      return 'nothing: it has ended';
    case 'failed':
      return `nothing: it failed with ${run.failure}`;
  }
}
