import { CallError } from '../errors.ts';
import { ownerKey } from '../ids.ts';
import type { Amounts, CeilingAccounts, Hold } from './ceilings.ts';
import type { CallScope } from './types.ts';

export interface ReservationLimits {
  /** Calls of one user in flight at once. */
  readonly concurrentCalls: number;
  /** Calls of one run, denied ones included. */
  readonly callsPerRun: number;
  /** Ceilings on the accounts of tenant, user and thread; without it only the two above hold. */
  readonly accounts?: CeilingAccounts;
}

/** A reserved place; `release` gives it back once, later calls do nothing. */
export interface Reservation {
  /** Books what the call has used, then releases. */
  settle(spent: Amounts): void;
  release(): void;
}

/**
 * Ceilings on the actual actor's account, reserved before anything is allocated; a user never seen before is capped like any other.
 * Held in memory: a crash releases everything.
 */
export class Reservations {
  readonly #limits: ReservationLimits;
  readonly #inFlight = new Map<string, number>();
  readonly #calls = new Map<string, number>();

  constructor(limits: ReservationLimits) {
    this.#limits = limits;
  }

  /**
   * @param wish - what the call may use at most, on every account
   * @throws CallError `budget_exhausted`, naming account and dimension; nothing is reserved then
   */
  reserve(scope: Pick<CallScope, 'tenant' | 'user' | 'thread' | 'run'>, wish: Amounts = {}): Reservation {
    const account = ownerKey(scope);
    const inFlight = this.#inFlight.get(account) ?? 0;
    if (inFlight >= this.#limits.concurrentCalls) throw exhausted(`user ${scope.user}`, 'concurrent_calls', this.#limits.concurrentCalls);
    const calls = this.callsOf(scope.run);
    if (calls >= this.#limits.callsPerRun) throw exhausted(`run ${scope.run}`, 'calls_per_run', this.#limits.callsPerRun);
    const hold = this.#limits.accounts?.reserve(scope, wish);
    this.#inFlight.set(account, inFlight + 1);
    this.#calls.set(scope.run, calls + 1);
    return this.#reservation(account, hold);
  }

  #reservation(account: string, hold: Hold | undefined): Reservation {
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      hold?.release();
      const left = (this.#inFlight.get(account) ?? 1) - 1;
      if (left > 0) this.#inFlight.set(account, left);
      else this.#inFlight.delete(account);
    };
    return {
      release,
      settle: (spent) => {
        hold?.settle(spent);
        release();
      },
    };
  }

  callsOf(run: string): number {
    return this.#calls.get(run) ?? 0;
  }

  /** Calls that the run may still make. */
  callsLeftOf(run: string): number {
    return Math.max(0, this.#limits.callsPerRun - this.callsOf(run));
  }

  /** Forgets a run that has ended. */
  forget(run: string): void {
    this.#calls.delete(run);
  }
}

const exhausted = (account: string, dimension: string, limit: number): CallError =>
  new CallError('budget_exhausted', `${account} has used up ${dimension} (${limit})`);
