import { CallError } from '../errors.ts';
import { ownerKey } from '../ids.ts';
import type { Amounts, CeilingAccounts, Hold } from './ceilings.ts';
import type { CallKey, CallScope } from './types.ts';

export interface ReservationLimits {
  /** Calls of one user in flight at once. */
  readonly concurrentCalls: number;
  /** Calls of one run, denied ones included. */
  readonly callsPerRun: number;
  /** Ceilings on the accounts of tenant, user and thread; without it only the two above hold. */
  readonly accounts?: CeilingAccounts;
}

/** A reserved place: in flight, and on the accounts. */
export type Reservation = Hold;

/**
 * Ceilings on the actual actor's account, reserved before anything is allocated; a user never seen before is capped like any other.
 * Calls in flight are held in memory: a crash releases them. Calls of a run are counted by its ledger.
 */
export class Reservations {
  readonly #limits: ReservationLimits;
  readonly #inFlight = new Map<string, number>();
  readonly #calls = new Map<string, number>();
  /** Of a run that is redriven, the keys in its ledger that this attempt has not come to again. */
  readonly #known = new Map<string, Set<string>>();

  constructor(limits: ReservationLimits) {
    this.#limits = limits;
  }

  /** A run is redriven: the calls in its ledger are made, and each counts no second time when the attempt comes to it again. */
  resume(run: string, ledger: readonly CallKey[]): void {
    this.#calls.set(run, ledger.length);
    this.#known.set(run, new Set(ledger.map(nameOf)));
  }

  /**
   * @param wish - what the call may use at most, on every account
   * @throws CallError `budget_exhausted`, naming account and dimension; nothing is reserved then
   */
  reserve(scope: Pick<CallScope, 'tenant' | 'user' | 'thread' | 'run'>, key: CallKey, wish: Amounts = {}): Reservation {
    const account = ownerKey(scope);
    const inFlight = this.#inFlight.get(account) ?? 0;
    if (inFlight >= this.#limits.concurrentCalls) throw exhausted(`user ${scope.user}`, 'concurrent_calls', this.#limits.concurrentCalls);
    const isNew = this.#known.get(scope.run)?.has(nameOf(key)) !== true;
    const calls = this.callsOf(scope.run);
    if (isNew && calls >= this.#limits.callsPerRun) throw exhausted(`run ${scope.run}`, 'calls_per_run', this.#limits.callsPerRun);
    const hold = this.#limits.accounts?.reserve(scope, wish);
    this.#inFlight.set(account, inFlight + 1);
    if (isNew) this.#calls.set(scope.run, calls + 1);
    else this.#known.get(scope.run)?.delete(nameOf(key));
    return this.#reservation(account, hold);
  }

  #reservation(account: string, hold: Hold | undefined): Reservation {
    let held = true;
    const free = () => {
      if (!held) return;
      held = false;
      const left = (this.#inFlight.get(account) ?? 1) - 1;
      if (left > 0) this.#inFlight.set(account, left);
      else this.#inFlight.delete(account);
    };
    return {
      release() {
        hold?.release();
        free();
      },
      settle(spent) {
        hold?.settle(spent);
        free();
      },
      forfeit() {
        hold?.forfeit();
        free();
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

  /** Forgets a run whose attempt has ended. */
  forget(run: string): void {
    this.#calls.delete(run);
    this.#known.delete(run);
  }
}

const nameOf = ({ step, call }: CallKey): string => `${step}.${call}`;

const exhausted = (account: string, dimension: string, limit: number): CallError =>
  new CallError('budget_exhausted', `${account} has used up ${dimension} (${limit})`);
