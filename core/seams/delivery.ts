/** A reply, or an ask for approval, that is on its way to where the run's message came from. */
export interface DeliveryItem {
  /** Stable over retries: a channel that knows it sends nothing again. */
  readonly id: string;
  readonly tenant: string;
  readonly thread: string;
  readonly run: string;
  readonly user: string;
  readonly body: string;
  /** `approval`: for those who may answer it; the body is all that they are shown. */
  readonly kind: 'reply' | 'approval';
  /** Id of the ask, when it is one. */
  readonly approval?: string;
}

/**
 * Brings replies to a channel.
 *
 * - D1 resolves when the channel has taken the item; a rejection means that it surely has not.
 * - D2 it is never called twice for one id by the kernel, unless the first call surely failed.
 */
export interface Delivery {
  readonly name: string;
  deliver(item: DeliveryItem): Promise<void>;
}
