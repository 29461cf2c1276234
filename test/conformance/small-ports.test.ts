import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import { threadDelivery } from '../../adapters/delivery/thread-delivery.ts';
import { noEgress } from '../../adapters/egress/no-egress.ts';
import { brokerConformance, deliveryConformance, egressConformance } from './small-ports.ts';

brokerConformance('no-secrets', async () => ({ broker: noSecrets, leased: [] }));
egressConformance('no-egress', async () => ({ egress: noEgress }));
deliveryConformance('thread', async () => ({ delivery: threadDelivery }));
