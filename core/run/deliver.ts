import type { Store } from '../ports/store.ts';
import type { Clock } from '../seams/clock.ts';
import type { Delivery } from '../seams/delivery.ts';
import { pause } from './pause.ts';
import { untilStored } from './until-stored.ts';

export interface DeliverDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly delivery: Delivery;
  readonly onError: (error: unknown, run: string | undefined) => void;
}

/** After a refusal, of an item by its channel or of a write by the store, it is tried again. */
const RETRY_MS = 5000;

/** A channel that is still at it when the kernel closes has so long to come to its end. */
const CLOSING_MS = 5000;

/**
 * Brings durable replies to their channel, one at a time, in order of their threads. A channel that rejects surely has not taken the item:
 * it stays `prepared`. What a dead kernel was sending is `unknown` and never sent again by itself.
 */
export class Deliverer implements AsyncDisposable {
  readonly #deps: DeliverDeps;
  #working: Promise<void> | undefined;
  #again = false;
  readonly #closing = new AbortController();
  #stopRetry = (): void => {};

  constructor(deps: DeliverDeps) {
    this.#deps = deps;
  }

  /** There may be something to deliver. */
  kick(): void {
    if (this.#closing.signal.aborted) return;
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      if (this.#again) this.kick();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#stopRetry();
    await this.#working;
  }

  async #work(): Promise<void> {
    try {
      while (this.#again && !this.#closing.signal.aborted) {
        this.#again = false;
        while (!this.#closing.signal.aborted && (await this.#deliverOne()));
      }
    } catch (error) {
      this.#again = false;
      this.#deps.onError(error, undefined);
      this.#stopRetry = this.#deps.clock.after(RETRY_MS, () => this.kick());
    }
  }

  /** @returns whether there may be a next one now */
  async #deliverOne(): Promise<boolean> {
    const { store, clock, delivery } = this.#deps;
    const row = await store.deliveries.next(clock.now());
    if (row === undefined) return false;
    const { id, tenant, thread, run, user, body, kind, approval } = row;
    const finish = (to: 'prepared' | 'delivered', type: 'delivery.failed' | 'delivery.sent') => {
      const event = { type, tenant, thread, run, data: { delivery: id, channel: delivery.name } };
      return untilStored(clock, this.#closing.signal, () => store.deliveries.finish(id, to, event, clock.now()));
    };
    try {
      const sending = delivery.deliver({ id, tenant, thread, run, user, body, kind, ...(approval === undefined ? {} : { approval }) });
      // Whether it was sent is not known then: the next kernel's sweep says so.
      if (!(await this.#endsInTime(sending))) return false;
    } catch (error) {
      await finish('prepared', 'delivery.failed');
      this.#deps.onError(error, run);
      this.#stopRetry = clock.after(RETRY_MS, () => this.kick());
      return false;
    }
    await finish('delivered', 'delivery.sent');
    return true;
  }

  /** @returns false when the kernel closes and it does not end soon */
  async #endsInTime(sending: Promise<void>): Promise<boolean> {
    const over = new AbortController();
    const closed = async () => {
      const { signal } = this.#closing;
      if (!signal.aborted)
        await new Promise((wake) => AbortSignal.any([signal, over.signal]).addEventListener('abort', wake, { once: true }));
      await pause(this.#deps.clock, CLOSING_MS, over.signal);
      return false;
    };
    try {
      return await Promise.race([sending.then(() => true), closed()]);
    } finally {
      over.abort();
    }
  }
}
