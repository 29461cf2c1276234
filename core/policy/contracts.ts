import { CAPABILITIES, type Caller, type EffectClass } from '../capability/types.ts';
import type { CallCredential } from '../ports/broker.ts';
import { type EngineName, type Origin, PLACEMENTS, type Role } from '../run/types.ts';
import type { ClosedContract, Contract } from './contract.ts';

/**
 * Version of the contracts. A new field keeps it; a field that goes, or means something else, raises it, and bundles of another version are
 * not loaded.
 */
export const CONTRACT_VERSION = 1;

const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const list = <Items extends Contract>(items: Items) => ({ type: 'array', items }) as const;
const closed = <Properties extends ClosedContract['properties']>(properties: Properties) => ({ type: 'object', properties }) as const;

const ROLES = ['user', 'approver', 'operator', 'policy'] as const satisfies readonly Role[];
const ORIGINS = ['interactive', 'trigger', 'operator'] as const satisfies readonly Origin[];
const ENGINES = ['bubblewrap', 'docker'] as const satisfies readonly EngineName[];
const CALLERS = ['executor', 'product', 'operator'] as const satisfies readonly Caller[];
const CREDENTIALS = ['none', 'present', 'missing'] as const satisfies readonly CallCredential['credential'][];
const EFFECT_CLASSES = ['pure', 'idempotent', 'once'] as const satisfies readonly EffectClass[];

const person = closed({ user: text, roles: list({ enum: ROLES }) });

/** Whose question it is: every kind has these. */
const identity = {
  version: { const: CONTRACT_VERSION },
  scope: closed({ tenant: text, user: text, thread: text, run: text }),
  actor: person,
  origin: { enum: ORIGINS },
  time: { type: 'string', description: 'Milliseconds since the epoch.' },
} as const;

/** Where it happens. */
const seat = { placement: { enum: PLACEMENTS }, engine: { enum: ENGINES }, wall: text } as const;

const args = { free: true, description: 'Projection of the arguments; its shape is the capability’s own.' } as const;

const call = {
  title: 'Input of the kind call',
  ...closed({
    ...identity,
    ...seat,
    kind: { const: 'call' },
    capability: { enum: CAPABILITIES },
    caller: { enum: CALLERS },
    effectClass: { enum: EFFECT_CLASSES },
    args,
    argsDigest: text,
    callsUsed: count,
    callsLeft: count,
    wallMsLeft: { ...count, description: 'Milliseconds until the hard end of the run.' },
    sandboxOrigins: {
      ...list({ enum: ORIGINS }),
      description: 'Origins of the runs that this sandbox has served since it was made, this run’s own among them.',
    },
    otherActors: { ...list(text), description: 'Users other than the actor whose text is in the thread this run reads.' },
    credential: {
      enum: CREDENTIALS,
      default: 'none',
      description: 'Whether the call has the credential that its recipe is for; without a recipe it needs none.',
    },
    recipe: { ...text, default: '', description: 'What the call is credentialed by; empty when no recipe is for it.' },
  }),
} as const;

const placement = {
  title: 'Input of the kind placement',
  ...closed({
    ...identity,
    ...seat,
    kind: { const: 'placement' },
    harness: text,
    profile: { enum: ['development', 'production'] },
  }),
} as const;

const egress = {
  title: 'Input of the kind egress',
  ...closed({
    ...identity,
    ...seat,
    kind: { const: 'egress' },
    permit: { type: 'string', description: 'Permit of the invocation that asks.' },
    scheme: { enum: ['http', 'https'] },
    method: { type: 'string', description: 'CONNECT for a tunnel whose requests are not seen.' },
    host: { type: 'string', description: 'Canonical: lower case, no trailing dot, no port; an IPv6 address without brackets.' },
    port: { type: 'integer', minimum: 1, maximum: 65535 },
    path: { type: 'string', description: 'The bytes that are sent upstream; empty for a tunnel.' },
    query: list(closed({ name: text, value: text })),
    headers: list(closed({ name: text, value: text })),
    operations: list(closed({ protocol: text, action: text, target: text })),
    operationsParsed: { type: 'boolean', description: 'False when the body could not be read as the protocol it claims.' },
    recipe: { type: 'string', description: 'Empty when no recipe names the host.' },
    credential: { enum: CREDENTIALS },
  }),
} as const;

const approval = {
  title: 'Input of the kind approval',
  ...closed({
    ...identity,
    kind: { const: 'approval' },
    answer: { enum: ['approve', 'deny'] },
    approver: person,
    approval: { type: 'string', description: 'Id of the ask.' },
    capability: { enum: CAPABILITIES },
    effectClass: { enum: EFFECT_CLASSES },
    args,
    fingerprint: { type: 'string', description: 'Digest of all that the approver was shown and the call is held to.' },
  }),
} as const;

const trigger = {
  title: 'Input of the kind trigger',
  ...closed({
    ...identity,
    kind: { const: 'trigger' },
    action: { enum: ['create', 'delete'] },
    caller: { enum: CALLERS },
    source: { enum: ['schedule', 'webhook'] },
    schedule: { type: 'string', description: 'Cron expression; empty for a webhook.' },
    bodyDigest: { type: 'string', description: 'Digest of the message that the trigger will post.' },
  }),
} as const;

/** The contract of each kind of question, the one source of types, schemas and marshalling. */
export const CONTRACTS = { call, placement, egress, approval, trigger } as const satisfies Readonly<Record<string, ClosedContract>>;

export type PolicyKind = keyof typeof CONTRACTS;

export const POLICY_KINDS = Object.keys(CONTRACTS) as readonly PolicyKind[];
