import type { Broker } from './ports/broker.ts';
import type { Clock } from './seams/clock.ts';
import type { Delivery } from './seams/delivery.ts';
import type { ModelGateway } from './seams/model-gateway.ts';

/** What an adapter from another package may use. */
export interface AdapterDeps {
  readonly clock: Clock;
}

interface Manifest<Port extends string, Made> {
  readonly port: Port;
  /** Shown in events and `doctor`; unique among the adapters of one port. */
  readonly name: string;
  create(deps: AdapterDeps): Made | Promise<Made>;
}

/**
 * An adapter that code outside this package brings: `createKernel(config, { adapters: [mine] })`. It replaces the built-in one of its port.
 * The suites of `outwork/conformance` hold it to the port's clauses.
 */
export type AdapterManifest = Manifest<'broker', Broker> | Manifest<'delivery', Delivery> | Manifest<'model', ModelGateway>;
