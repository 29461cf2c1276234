import type { CallScope } from '../capability/types.ts';
import type { Seat } from '../ports/placement.ts';
import type { ExitClaim, Gate } from './types.ts';

/** One run that has a seat in this kernel. */
export interface LiveRun {
  readonly scope: CallScope;
  readonly seat: Seat;
  /** Aborted on cancellation, lost lease, deadline and shutdown: ends kernel-side work of the run. */
  readonly signal: AbortSignal;
  /** The gate a call of this attempt stopped at: the evidence for a `parked` claim. */
  gate: Gate | undefined;
  cancelRequested: boolean;
  /** Aborts `signal`. */
  readonly cancel: () => void;
  /** Set once by the executor's `exit`. */
  readonly exit: PromiseWithResolvers<ExitClaim>;
}

/** Runs seated in this process, by id. Not durable and never the source of truth: the fence is. */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>();

  add(run: LiveRun): void {
    this.#runs.set(run.scope.run, run);
  }

  find(run: string): LiveRun | undefined {
    return this.#runs.get(run);
  }

  remove(run: string): void {
    this.#runs.delete(run);
  }
}
