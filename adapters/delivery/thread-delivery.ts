import type { Delivery } from '../../core/seams/delivery.ts';

/** The channel of the command line and the API: the reply is already in its thread, where they read it; nothing has to be sent. */
export const threadDelivery: Delivery = {
  name: 'thread',
  deliver: () => Promise.resolve(),
};
