import type { EgressPolicyInput, TriggerPolicyInput } from '../../../core/policy/types.ts';
import { IDENTITY, SEAT } from './inputs.ts';

/** A request that an entry `ENTRY` of its host admits. */
export const egressInput = (change: Partial<EgressPolicyInput> = {}): EgressPolicyInput => ({
  ...IDENTITY,
  ...SEAT,
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
  ...IDENTITY,
  kind: 'trigger',
  action: 'create',
  caller: 'product',
  source: 'schedule',
  schedule: '0 9 * * 1',
  bodyDigest: 'ab'.repeat(32),
  ...change,
});
