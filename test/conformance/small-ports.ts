import { describe, expect, it } from 'vitest';
import type { Broker } from '../../core/ports/broker.ts';
import type { Egress } from '../../core/ports/egress.ts';
import type { Delivery, DeliveryItem } from '../../core/seams/delivery.ts';

const OWNER = { tenant: 'default', user: 'ada' };

/** Clause B1 of the broker port. `leased` are the secrets the factory has leased to `OWNER` and to nobody else. */
export function brokerConformance(name: string, make: () => Promise<{ broker: Broker; leased: readonly string[] }>): void {
  describe(`broker ${name}`, () => {
    it('B1 gives every secret that is leased to the owner, and to no other', async () => {
      const { broker, leased } = await make();
      expect([...broker.liveSecrets(OWNER)].sort()).toEqual([...leased].sort());
      expect(broker.liveSecrets({ ...OWNER, user: 'bo' })).toEqual([]);
    });
  });
}

/** Clauses E1 and E2 of the egress port; `open` leaves one request of the permit open, where the adapter lets anything out at all. */
export function egressConformance(
  name: string,
  make: () => Promise<{ egress: Egress; open?: (run: string, permit: string) => Promise<void> }>,
): void {
  describe(`egress ${name}`, () => {
    it('E1 E2 counts the open requests of a permit, and none is left after revoke', async () => {
      const { egress, open } = await make();
      await open?.('run_1', 'prm_1');
      expect(egress.openRequests('prm_1')).toBe(open === undefined ? 0 : 1);
      await egress.revoke('run_1');
      expect(egress.openRequests('prm_1')).toBe(0);
    });
  });
}

/** Clause D1 of the delivery seam. `taken` tells what the channel holds; undefined where it holds nothing of its own. */
export function deliveryConformance(
  name: string,
  make: () => Promise<{ delivery: Delivery; taken?: () => readonly DeliveryItem[] }>,
): void {
  describe(`delivery ${name}`, () => {
    it('D1 resolves when the channel has taken the item, whole', async () => {
      const { delivery, taken } = await make();
      const item = { id: 'dlv_1', tenant: 'default', thread: 'thr_1', run: 'run_1', user: 'ada', body: 'hello', kind: 'reply' } as const;
      await delivery.deliver(item);
      if (taken !== undefined) expect(taken()).toEqual([item]);
      expect(delivery.name).toMatch(/^[a-z][a-z0-9-]*$/);
    });
  });
}
