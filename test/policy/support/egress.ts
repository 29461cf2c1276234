import type { EgressPolicyInput, TriggerPolicyInput } from '../../../core/policy/types.ts';

const identity = {
  version: 1,
  scope: { tenant: 'acme', user: 'ada', thread: 'thr_01', run: 'run_01' },
  actor: { user: 'ada', roles: ['user'] },
  origin: 'interactive',
  time: '1700000000000',
} as const;

/** A request that an entry `ENTRY` of its host admits. */
export const egressInput = (change: Partial<EgressPolicyInput> = {}): EgressPolicyInput => ({
  ...identity,
  placement: 'host-loop-shell',
  engine: 'bubblewrap',
  wall: 'namespaces',
  kind: 'egress',
  permit: 'prm_01',
  scheme: 'https',
  method: 'GET',
  host: 'example.com',
  port: 443,
  path: '/a',
  query: [],
  headers: [],
  operations: [],
  operationsParsed: true,
  recipe: '',
  credential: 'none',
  ...change,
});

/** An entry of data/egress.yaml as YAML writes it. */
export const ENTRY = '{ ports: [443], schemes: [https], methods: [GET], paths: [/**] }';

export const triggerInput = (change: Partial<TriggerPolicyInput> = {}): TriggerPolicyInput => ({
  ...identity,
  kind: 'trigger',
  action: 'create',
  caller: 'product',
  source: 'schedule',
  schedule: '0 9 * * 1',
  bodyDigest: 'ab'.repeat(32),
  ...change,
});
