import type { CallScope } from '../capability/types.ts';
import type { ExecutorOutcome } from '../run/types.ts';

/**
 * Runs one claimed run to its next stop. `core/run/execute-run.ts` is its only caller.
 *
 * - X1 it works through membrane operations only; it sends no scope and no actor.
 * - X2 the outcome is `exited` with the executor's own claim, or `lost`; it never rejects for what the executor did.
 * - X3 after an abort it ends within the cancel grace, else it is ended and reported `lost`.
 */
export interface Executor {
  execute(task: ExecutorTask): Promise<ExecutorOutcome>;
}

/** Reason of an abort that a person asked for. One without a reason of these two (a lost lease, a closing kernel) leaves the run to its next attempt. */
export const CANCELLED = 'cancelled';

/** Reason of an abort at the run's deadline: no next attempt will judge what is open. */
export const DEADLINE = 'deadline';

export interface ExecutorTask {
  readonly scope: CallScope;
  readonly harness: string;
  readonly signal: AbortSignal;
}
