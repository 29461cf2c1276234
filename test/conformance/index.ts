// `outwork/conformance`: suites over a factory, to be run with vitest by the package that brings an adapter. `test/architecture` pins this list.
export type { MakeWorld, StoreWorld } from '../store/worlds.ts';
export { type BrokerWorld, brokerConformance, deliveryConformance, egressConformance } from './small-ports.ts';
export { storeConformance } from './store.ts';
