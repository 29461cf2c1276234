import { CANCELLED, DEADLINE, type Executor } from '../../core/ports/executor.ts';
import type { LiveRuns } from '../../core/run/live-runs.ts';
import type { ExecutorOutcome } from '../../core/run/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { RunTokens } from '../../core/seams/run-tokens.ts';
import { forgetRun, type RunningSandbox } from '../sandbox/manager.ts';

export interface GuestExecutorDeps {
  readonly live: LiveRuns;
  readonly tokens: RunTokens;
  readonly clock: Clock;
  readonly cancelGraceMs: number;
}

/** The executor that lives in the sandbox: gets a run token on its control stream, ends with an `exit` or by being lost. */
export const guestExecutor =
  (deps: GuestExecutorDeps) =>
  (sandbox: RunningSandbox): Executor => ({
    async execute({ scope, harness, signal }): Promise<ExecutorOutcome> {
      const exit = deps.live.find(scope.run)?.exit.promise;
      if (exit === undefined) return { kind: 'lost', reason: 'the run has no seat' };
      const { tenant, user, thread, run, fence, placement, deadlineMs } = scope;
      const claims = { kind: 'run', tenant, user, thread, run, fence, placement, sandbox: sandbox.generation } as const;
      const token = await deps.tokens.mint(claims, deadlineMs);
      const lost = sandbox.lost.then(({ reason }): ExecutorOutcome => ({ kind: 'lost', reason }));
      const exited = exit.then((claim): ExecutorOutcome => ({ kind: 'exited', claim }));
      sandbox.channel.send({ type: 'run', run, token, harness, deadlineMs });
      try {
        return await Promise.race([exited, lost, graceAfterAbort(deps, sandbox, run, signal)]);
      } finally {
        forgetRun(sandbox, run);
      }
    },
  });

/**
 * An executor whose run is cancelled, or at its deadline, is told, and has the grace to end what it started. Any other abort leaves the end of
 * its commands open for the next attempt to judge: they are ended by the kernel and not by themselves.
 */
function graceAfterAbort(deps: GuestExecutorDeps, sandbox: RunningSandbox, run: string, signal: AbortSignal): Promise<ExecutorOutcome> {
  return new Promise((resolve) => {
    const onAbort = () => {
      if (signal.reason !== CANCELLED && signal.reason !== DEADLINE) return resolve({ kind: 'lost', reason: 'stopped' });
      deps.clock.after(deps.cancelGraceMs, () => resolve({ kind: 'lost', reason: 'the executor did not stop in time' }));
      try {
        sandbox.channel.send({ type: 'cancel', run });
      } catch {
        resolve({ kind: 'lost', reason: 'the guest is gone' });
      }
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
