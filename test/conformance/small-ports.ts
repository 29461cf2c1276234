import { describe, expect, it } from 'vitest';
import { NAME_PATTERN } from '../../core/ids.ts';
import type { Broker, CredentialedCall } from '../../core/ports/broker.ts';
import type { Egress } from '../../core/ports/egress.ts';
import type { Delivery, DeliveryItem } from '../../core/seams/delivery.ts';

const OWNER = { tenant: 'default', user: 'ada' };

/** What a factory of brokers gives. `leased` are the secrets that it has leased to `OWNER` and to nobody else. */
export interface BrokerWorld {
  readonly broker: Broker;
  readonly leased: readonly string[];
  /** Calls of `OWNER`, where the adapter knows a recipe for any. */
  readonly calls?: {
    readonly present: CredentialedCall;
    readonly missing: CredentialedCall;
    /** Gives `OWNER` what the missing one needs. */
    readonly provide: () => Promise<void>;
  };
}

/** Clauses B1 to B3 of the broker port. */
export function brokerConformance(name: string, make: () => Promise<BrokerWorld>): void {
  const plain: CredentialedCall = { capability: 'thread.read', args: {} };
  describe(`broker ${name}`, () => {
    it('B1 gives every secret that is leased to the owner, and to no other', async () => {
      const { broker, leased } = await make();
      expect([...broker.liveSecrets(OWNER)].sort()).toEqual([...leased].sort());
      expect(broker.liveSecrets({ ...OWNER, user: 'bo' })).toEqual([]);
      expect(broker.liveSecrets({ ...OWNER, tenant: 'other' })).toEqual([]);
    });

    it('B1 without an owner gives those of everybody', async () => {
      const { broker, leased } = await make();
      expect([...broker.liveSecrets()].sort()).toEqual([...leased].sort());
    });

    it('B2 a call without a recipe needs no credential; of a recipe nobody knows nothing is missing', async () => {
      const { broker } = await make();
      expect(await broker.credentialOf(OWNER, plain)).toEqual({ credential: 'none', recipe: '' });
      expect(await broker.isMissing(OWNER, 'nobody-knows-this-recipe')).toBe(false);
    });

    it('B2 B3 says what is there and what is not, by owner, without a secret in its words', async () => {
      const { broker, calls, leased } = await make();
      if (calls === undefined) return;
      const present = await broker.credentialOf(OWNER, calls.present);
      const missing = await broker.credentialOf(OWNER, calls.missing);
      expect([present.credential, missing.credential]).toEqual(['present', 'missing']);
      for (const answer of [present, missing]) {
        expect(answer.recipe).toMatch(NAME_PATTERN);
        expect(leased.filter((secret) => JSON.stringify(answer).includes(secret))).toEqual([]);
        expect(await broker.isMissing(OWNER, answer.recipe)).toBe(answer === missing);
        // What one has, another has not.
        expect(await broker.isMissing({ ...OWNER, user: 'bo' }, answer.recipe)).toBe(true);
      }
      expect(missing).toHaveProperty('hint', expect.stringMatching(/\S/));
      expect((await broker.credentialOf({ ...OWNER, user: 'bo' }, calls.present)).credential).toBe('missing');
    });

    it('B3 a credential that has come is missing no more', async () => {
      const { broker, calls } = await make();
      if (calls === undefined) return;
      const { recipe } = await broker.credentialOf(OWNER, calls.missing);
      await calls.provide();
      expect(await broker.isMissing(OWNER, recipe)).toBe(false);
      expect(await broker.credentialOf(OWNER, calls.missing)).toEqual({ credential: 'present', recipe });
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
