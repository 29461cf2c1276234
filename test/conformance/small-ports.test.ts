import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import { threadDelivery } from '../../adapters/delivery/thread-delivery.ts';
import { noEgress } from '../../adapters/egress/no-egress.ts';
import { TestBroker } from '../support/test-broker.ts';
import { brokerConformance, deliveryConformance, egressConformance } from './small-ports.ts';

brokerConformance('no-secrets', async () => ({ broker: noSecrets, leased: [] }));
brokerConformance('in-memory', async () => {
  const broker = new TestBroker({ gh: 'github', glab: 'gitlab' });
  const owner = { tenant: 'default', user: 'ada' };
  broker.provide(owner, 'github', 'a-secret-of-ada-0123456789');
  return {
    broker,
    leased: ['a-secret-of-ada-0123456789'],
    calls: {
      present: { capability: 'shell.exec', args: { argv: ['gh', 'pr', 'list'] } },
      missing: { capability: 'shell.exec', args: { argv: ['glab', 'mr', 'list'] } },
      provide: async () => broker.provide(owner, 'gitlab', 'another-secret-of-ada-0123'),
    },
  };
});
egressConformance('no-egress', async () => ({ egress: noEgress }));
deliveryConformance('thread', async () => ({ delivery: threadDelivery }));
