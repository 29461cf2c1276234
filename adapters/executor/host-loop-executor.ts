import { OutworkError, SandboxError } from '../../core/errors.ts';
import { CANCELLED, type Executor } from '../../core/ports/executor.ts';
import type { ExecutorOutcome } from '../../core/run/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { Harness } from '../../core/wire/protocol.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import { bindInProcess } from '../membrane/in-process.ts';
import { forgetRun, type RunningSandbox } from '../sandbox/manager.ts';

export interface HostLoopExecutorDeps {
  readonly service: MembraneService;
  /** Our own harnesses by name; the same functions are bundled into the guest. */
  readonly harnesses: ReadonlyMap<string, Harness>;
  readonly clock: Clock;
  readonly cancelGraceMs: number;
}

/** The loop in the kernel process, over the same operations as a guest, without a transport. */
export const hostLoopExecutor =
  (deps: HostLoopExecutorDeps) =>
  (sandbox: RunningSandbox): Executor => ({
    async execute({ scope, harness, signal }): Promise<ExecutorOutcome> {
      const loop = deps.harnesses.get(harness);
      if (loop === undefined) return failedExit('harness_unknown', `No harness of that name: ${harness}`);
      // Without its sandbox the loop could only hand out commands that nobody carries out.
      const lost = sandbox.lost.then(({ reason }): ExecutorOutcome => ({ kind: 'lost', reason }));
      const exited = loop(bindInProcess(deps.service, scope), signal).then(
        (claim): ExecutorOutcome => ({ kind: 'exited', claim }),
        (error: unknown): ExecutorOutcome => {
          if (error instanceof SandboxError) return { kind: 'lost', reason: error instanceof Error ? error.message : String(error) };
          return failedExit(
            error instanceof OutworkError ? error.code : 'loop_error',
            error instanceof Error ? error.message : String(error),
          );
        },
      );
      try {
        return await Promise.race([exited, lost, stoppedInTime(deps, signal, exited)]);
      } finally {
        forgetRun(sandbox, scope.run);
      }
    },
  });

/**
 * A cancelled loop has the grace to end its command. Then only this run stopped: the sandbox, which serves the user's other runs and their
 * background processes, stays. Any other abort leaves the command's end open: the next attempt judges it, or the run's own end tells of it.
 */
function stoppedInTime(deps: HostLoopExecutorDeps, signal: AbortSignal, exited: Promise<ExecutorOutcome>): Promise<ExecutorOutcome> {
  return new Promise((resolve) => {
    const onAbort = () => {
      if (signal.reason !== CANCELLED) return resolve({ kind: 'lost', reason: 'stopped' });
      const cancel = deps.clock.after(deps.cancelGraceMs, () => resolve({ kind: 'lost', reason: 'the loop did not stop in time' }));
      void exited.then((outcome) => {
        cancel();
        const gone = outcome.kind === 'lost' && outcome.intact !== true;
        resolve(gone ? outcome : { kind: 'lost', reason: 'stopped', intact: true });
      });
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

const failedExit = (code: string, message: string): ExecutorOutcome => ({ kind: 'exited', claim: { kind: 'failed', code, message } });
