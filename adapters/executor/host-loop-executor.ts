import { OutworkError, SandboxError } from '../../core/errors.ts';
import type { Executor } from '../../core/ports/executor.ts';
import type { ExecutorOutcome } from '../../core/run/types.ts';
import type { Harness } from '../../core/wire/protocol.ts';
import type { MembraneService } from '../../core/wire/service.ts';
import { bindInProcess } from '../membrane/in-process.ts';
import { forgetRun, type RunningSandbox } from '../sandbox/manager.ts';

export interface HostLoopExecutorDeps {
  readonly service: MembraneService;
  /** Our own harnesses by name; the same functions are bundled into the guest. */
  readonly harnesses: ReadonlyMap<string, Harness>;
}

/** The loop in the kernel process, over the same operations as a guest, without a transport. */
export const hostLoopExecutor =
  (deps: HostLoopExecutorDeps) =>
  (sandbox: RunningSandbox): Executor => ({
    async execute({ scope, harness, signal }): Promise<ExecutorOutcome> {
      const loop = deps.harnesses.get(harness);
      if (loop === undefined) return failedExit('harness_unknown', `No harness of that name: ${harness}`);
      const aborted = new Promise<ExecutorOutcome>((resolve) => {
        const stop = () => resolve({ kind: 'lost', reason: 'stopped' });
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop, { once: true });
      });
      // Without its sandbox the loop could only hand out commands that nobody carries out.
      const lost = sandbox.lost.then(({ reason }): ExecutorOutcome => ({ kind: 'lost', reason }));
      const exited = loop(bindInProcess(deps.service, scope), signal).then(
        (claim): ExecutorOutcome => ({ kind: 'exited', claim }),
        (error: unknown): ExecutorOutcome => {
          if (error instanceof SandboxError || signal.aborted)
            return { kind: 'lost', reason: error instanceof Error ? error.message : String(error) };
          return failedExit(
            error instanceof OutworkError ? error.code : 'loop_error',
            error instanceof Error ? error.message : String(error),
          );
        },
      );
      try {
        return await Promise.race([exited, aborted, lost]);
      } finally {
        forgetRun(sandbox, scope.run);
      }
    },
  });

const failedExit = (code: string, message: string): ExecutorOutcome => ({ kind: 'exited', claim: { kind: 'failed', code, message } });
