import { CallError } from '../errors.ts';
import type { CallRow } from '../ports/store.ts';
import type { Terms } from './floor.ts';
import type { CountsBefore } from './limit-counts.ts';
import type { Reservation } from './reservations.ts';
import type { CallScope } from './types.ts';

declare const sealed: unique symbol;

/**
 * The sealed, single-use, deadline-bound form of an allow. Only `seal` makes one, and dispatch accepts nothing else. The executor holds
 * at most its random id.
 */
export interface Permit {
  readonly [sealed]: true;
  readonly id: string;
  readonly deadlineMs: number;
  readonly scope: CallScope;
  readonly row: CallRow;
  readonly terms: Terms;
  /** The caller asked for the control sequences of its output. */
  readonly keepControls: boolean;
  readonly reservation: Reservation;
  /** Of a command: what the engine had counted before it was handed over. */
  readonly countsBefore?: CountsBefore | undefined;
  /** Approved bytes in place of the files that argv names; undefined when it runs as it was asked for. */
  readonly argv?: readonly string[] | undefined;
}

export const seal = (permit: Omit<Permit, typeof sealed>): Permit => Object.freeze({ ...permit }) as Permit;

/** Permits whose command runs in a sandbox, waiting for its outcome. A kernel that dies forgets them: the next fence judges their rows. */
export class LocalPermits {
  readonly #open = new Map<string, Permit>();

  add(permit: Permit): void {
    this.#open.set(permit.id, permit);
  }

  /**
   * Takes the permit out: the one claim of its close.
   * @throws CallError `permit_unknown` (never sealed, used, or of another run: no oracle)
   */
  take(id: string, scope: CallScope): Permit {
    const permit = this.#open.get(id);
    if (permit === undefined || permit.scope.run !== scope.run || permit.scope.fence !== scope.fence) {
      throw new CallError('permit_unknown', 'No such permit is open for this run');
    }
    this.#open.delete(id);
    return permit;
  }

  /** Ends every permit of a run; their rows are judged at the next claim. */
  drop(run: string): void {
    for (const permit of this.#open.values()) {
      if (permit.scope.run !== run) continue;
      permit.reservation.forfeit();
      this.#open.delete(permit.id);
    }
  }
}
