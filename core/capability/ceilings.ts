import { CallError } from '../errors.ts';
import { ACCOUNT_KINDS, type AccountKind, type Ceilings, type Dimension, isMetered } from '../limits.ts';
import type { Clock } from '../seams/clock.ts';

/** Amounts by dimension; what is not named is nothing. */
export type Amounts = Readonly<Partial<Record<Dimension, number>>>;

/** Whose accounts a call is on: its own thread's, its actor's, its tenant's. */
export interface AccountScope {
  readonly tenant: string;
  readonly user: string;
  readonly thread: string;
}

/** What was metered of one thread's calls, as a store has added it up. */
export interface Spent extends AccountScope {
  readonly amounts: Amounts;
}

/** A place in every account of a call. Of these methods the first counts, once. */
export interface Hold {
  /** Books what was really used in place of what was reserved. */
  settle(spent: Amounts): void;
  /** Books all that was reserved and is metered: nobody will ever tell what was used. */
  forfeit(): void;
  /** Gives everything back that was not booked. */
  release(): void;
}

/** What of these amounts is metered: what counts beyond the end of a call, and is kept with it. */
export const meteredOf = (amounts: Amounts): Amounts =>
  Object.fromEntries(Object.entries(amounts).filter(([dimension, amount]) => isMetered(dimension as Dimension) && amount > 0));

/** One account: what is held now, and what was used in the present window. */
interface Account {
  readonly name: string;
  readonly held: Map<Dimension, number>;
  used: Map<Dimension, number>;
  window: number;
}

/**
 * Ceilings on the accounts of the actual actor: tenant, then user, then thread; the first that is too small refuses. Reserved before
 * anything is allocated, all or nothing. No account is registered: one that is seen for the first time has the same ceilings as any other.
 *
 * `concurrency` and `processes` are held until a call ends; a crash gives them back. The others are metered: what is held and what was used
 * since the window began count together, and every account's window begins anew after `windowMs`. The books are in memory; what they say of
 * the present window is in the ledger too (S18), and a kernel that starts reads it from there (`restore`).
 */
export class CeilingAccounts {
  readonly #ceilings: Ceilings;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #accounts = new Map<string, Account>();

  constructor(ceilings: Ceilings, clock: Pick<Clock, 'now'>) {
    this.#ceilings = ceilings;
    this.#clock = clock;
  }

  /** When the present window began. */
  get windowStartMs(): number {
    return this.#window() * this.#ceilings.windowMs;
  }

  /** Books what an earlier kernel has left in the ledger of the present window: called once, before anything is reserved. */
  restore(ledger: readonly Spent[]): void {
    for (const { amounts, ...scope } of ledger) {
      for (const [kind, account] of this.#accountsOf(scope)) {
        if (Object.keys(this.#ceilings[kind]).some((dimension) => isMetered(dimension as Dimension)))
          add(account.used, meteredOf(amounts), 1);
      }
    }
  }

  /** @throws CallError `budget_exhausted`, naming account and dimension; nothing is held then */
  reserve(scope: AccountScope, wish: Amounts): Hold {
    const accounts = this.#accountsOf(scope);
    for (const [kind, account] of accounts) this.#check(kind, account, wish);
    for (const [, account] of accounts) add(account.held, wish, 1);
    return this.#hold(accounts, wish);
  }

  /** Books what nobody reserved, a response's bytes as they arrive. @throws CallError `budget_exhausted`: it was too much, and is booked */
  charge(scope: AccountScope, spent: Amounts): void {
    const accounts = this.#accountsOf(scope);
    for (const [, account] of accounts) add(account.used, spent, 1);
    for (const [kind, account] of accounts) this.#check(kind, account, {});
  }

  #hold(accounts: readonly (readonly [AccountKind, Account])[], wish: Amounts): Hold {
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      for (const [, account] of accounts) {
        add(account.held, wish, -1);
        this.#forget(account);
      }
    };
    const settle = (spent: Amounts) => {
      if (!held) return;
      for (const [, account] of accounts) add(this.#present(account).used, spent, 1);
      release();
    };
    return { release, settle, forfeit: () => settle(meteredOf(wish)) };
  }

  #check(kind: AccountKind, account: Account, wish: Amounts): void {
    for (const [dimension, limit] of Object.entries(this.#ceilings[kind]) as [Dimension, number][]) {
      const used = isMetered(dimension) ? (account.used.get(dimension) ?? 0) : 0;
      const wanted = wish[dimension] ?? 0;
      const all = (account.held.get(dimension) ?? 0) + used + wanted;
      if (all > limit) throw new CallError('budget_exhausted', `${account.name} has used up ${dimension} (${limit})`, { retryable: true });
    }
  }

  #accountsOf({ tenant, user, thread }: AccountScope): readonly (readonly [AccountKind, Account])[] {
    const names = { tenant, user: `${tenant}\0${user}`, thread: `${tenant}\0${thread}` };
    const shown = { tenant, user, thread };
    return ACCOUNT_KINDS.map((kind) => [kind, this.#account(`${kind}\0${names[kind]}`, `${kind} ${shown[kind]}`)] as const);
  }

  #account(key: string, name: string): Account {
    const known = this.#accounts.get(key);
    if (known !== undefined) return this.#present(known);
    this.#sweep();
    const account: Account = { name, held: new Map(), used: new Map(), window: this.#window() };
    this.#accounts.set(key, account);
    return account;
  }

  /** The account in the present window. */
  #present(account: Account): Account {
    const window = this.#window();
    if (account.window !== window) {
      account.used = new Map();
      account.window = window;
    }
    return account;
  }

  #window(): number {
    return Math.floor(this.#clock.now() / this.#ceilings.windowMs);
  }

  /** An account without anything in it is the same as none. */
  #forget(account: Account): void {
    for (const [dimension, amount] of account.held) if (amount <= 0) account.held.delete(dimension);
  }

  /** Threads come and go: accounts of a past window that hold nothing are let go when there are many. */
  #sweep(): void {
    if (this.#accounts.size % 1000 !== 999) return;
    const window = this.#window();
    for (const [key, account] of this.#accounts) if (account.window !== window && account.held.size === 0) this.#accounts.delete(key);
  }
}

function add(to: Map<Dimension, number>, amounts: Amounts, sign: 1 | -1): void {
  for (const [dimension, amount] of Object.entries(amounts) as [Dimension, number][]) {
    if (amount > 0) to.set(dimension, Math.max(0, (to.get(dimension) ?? 0) + sign * amount));
  }
}
