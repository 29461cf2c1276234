import type { CallScope } from '../capability/types.ts';
import type { Seat } from '../ports/placement.ts';
import type { ExitClaim, Gate, Origin } from './types.ts';

/** One run that has a seat in this kernel. */
export interface LiveRun {
  readonly scope: CallScope;
  readonly seat: Seat;
  /** Aborted on cancellation, lost lease, deadline and shutdown: ends kernel-side work of the run. */
  readonly signal: AbortSignal;
  /** Users other than the actor whose text is in the thread; absent means none. Grows when the thread is read again. */
  otherActors?: readonly string[];
  /** The gate a call of this attempt stopped at: the evidence for a `parked` claim. */
  gate: Gate | undefined;
  /** The last call of this attempt that failed could not be written down: its executor can do nothing for that. */
  refusedByStore?: boolean;
  cancelRequested: boolean;
  /** Steering may wait that the executor has not been given; replies to its calls say so, and it asks only then. */
  steeringWaits: boolean;
  /** Aborts `signal`. */
  readonly cancel: () => void;
  /** Set once by the executor's `exit`. */
  readonly exit: PromiseWithResolvers<ExitClaim>;
}

/** Runs seated in this process, by id. Not durable and never the source of truth: the fence is. */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>();
  /** Origins of the runs that each sandbox generation has served. A sandbox ends with its kernel, so this need not be durable. */
  readonly #origins = new Map<string, Set<Origin>>();

  add(run: LiveRun): void {
    this.#runs.set(run.scope.run, run);
    const { sandbox, origin } = run.scope;
    if (sandbox === undefined) return;
    const served = this.#origins.get(sandbox);
    if (served === undefined) this.#origins.set(sandbox, new Set([origin]));
    else served.add(origin);
  }

  /** Origins of the runs that a sandbox has served since it was made, sorted. */
  originsOf(sandbox: string | undefined): readonly Origin[] {
    return [...(this.#origins.get(sandbox ?? '') ?? [])].sort();
  }

  /** The sandbox is gone; its generation is never used again. */
  forgetSandbox(sandbox: string): void {
    this.#origins.delete(sandbox);
  }

  find(run: string): LiveRun | undefined {
    return this.#runs.get(run);
  }

  remove(run: string): void {
    this.#runs.delete(run);
  }
}
