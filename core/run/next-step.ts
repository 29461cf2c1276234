import type { Run } from './types.ts';

/** Why a queued run is not the next: its thread is held, an older one of its thread is first, or its user has no room left. */
export interface Ahead {
  readonly why: 'thread' | 'order' | 'user';
  readonly run: Run;
}

/** Answers "why is this run not moving" in one sentence: what has to happen next, and who does it. */
export function nextStep(run: Run, ahead: Ahead | undefined, nowMs: number): string {
  switch (run.state) {
    case 'queued':
      if (ahead?.why === 'thread') return `waits for ${ahead.run.id} (${ahead.run.state}), which holds its thread`;
      if (ahead?.why === 'order') return `waits for ${ahead.run.id}, an older message of its thread`;
      if (ahead?.why === 'user')
        return `waits for ${ahead.run.id} (${ahead.run.state}): ${run.actor} has as many runs at work as config allows`;
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
      if (run.gate?.kind === 'approval')
        return `an approver answers ${run.gate.ref}: outwork approval show ${run.gate.ref}, then approve or deny`;
      if (run.gate?.kind === 'credential') return `${run.actor} provides the credential ${run.gate.ref}; the run then goes on by itself`;
      return `waits at its ${run.gate?.kind} gate (${run.gate?.ref}) for a person to open it`;
    case 'completed':
    case 'cancelled':
      return 'nothing: it has ended';
    case 'failed':
      return `nothing: it failed with ${run.failure}`;
  }
}
