import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * The schema. Property names are the column names, so a row read through an entity and one returned by a bound statement have the same
 * shape, and `rows.ts` is the one mapper. JSON is kept as text. Times are milliseconds since the epoch.
 */

const time = () => p.bigint('number');

export const TenantEntity = defineEntity({
  name: 'Tenant',
  tableName: 'tenants',
  properties: { name: p.text().primary(), created_at_ms: time() },
});

const inTenant = () => p.manyToOne(TenantEntity).mapToPk().fieldName('tenant').index(false);

export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    tenant: inTenant().primary(),
    name: p.text().primary(),
    roles: p.text(),
    disabled: p.boolean(),
    slice: p.integer().unique(),
    created_at_ms: time(),
  },
});

export const UserTokenEntity = defineEntity({
  name: 'UserToken',
  tableName: 'user_tokens',
  properties: { digest: p.text().primary(), tenant: inTenant(), user_name: p.text(), expires_at_ms: time(), created_at_ms: time() },
  indexes: [{ name: 'user_tokens_owner', properties: ['tenant', 'user_name'] }],
});

export const ThreadEntity = defineEntity({
  name: 'Thread',
  tableName: 'threads',
  properties: {
    id: p.text().primary(),
    tenant: inTenant(),
    position: p.integer().unique(),
    created_at_ms: time(),
    /** 1: nothing is left of it to remove (S19); a message makes it 0 again. */
    pruned: p.integer().default(0),
  },
  indexes: [{ name: 'threads_unpruned', properties: ['position'], where: 'pruned = 0' }],
});

const inThread = () => p.manyToOne(ThreadEntity).mapToPk().fieldName('thread').index(false);

export const RunEntity = defineEntity({
  name: 'Run',
  tableName: 'runs',
  properties: {
    id: p.text().primary(),
    /** Order of arrival over all threads. */
    position: p.integer().unique(),
    tenant: inTenant(),
    thread: inThread(),
    actor: p.text(),
    origin: p.text(),
    message: p.text(),
    state: p.text(),
    gate: p.text().nullable(),
    fence: p.integer(),
    reclaims: p.integer(),
    lease_holder: p.text().nullable(),
    lease_until_ms: time().nullable(),
    /** Length of the current lease. */
    lease_ms: time().nullable(),
    deadline_ms: time().nullable(),
    placement: p.text().nullable(),
    harness: p.text().nullable(),
    cancel_requested: p.boolean(),
    created_at_ms: time(),
    ended_at_ms: time().nullable(),
    failure: p.text().nullable(),
  },
  indexes: [
    { name: 'runs_thread_position', properties: ['thread', 'position'] },
    { name: 'runs_actor', properties: ['tenant', 'actor', 'position'] },
    { name: 'runs_queued', properties: ['position'], where: "state = 'queued'" },
    { name: 'runs_held_actor', properties: ['tenant', 'actor'], where: "state in ('running', 'cancelling')" },
    { name: 'runs_lease', properties: ['lease_until_ms'], where: "state in ('running', 'cancelling')" },
  ],
  // The second guard of S1, should the claim ever be wrong (or run on a database with concurrent claimers).
  uniques: [{ name: 'runs_one_active_per_thread', properties: ['thread'], where: "state in ('running', 'parked', 'cancelling')" }],
});

const ofRun = () => p.manyToOne(RunEntity).mapToPk().fieldName('run').index(false);

export const MessageEntity = defineEntity({
  name: 'Message',
  tableName: 'messages',
  properties: {
    thread: inThread().primary(),
    seq: p.integer().primary(),
    id: p.text().unique(),
    author: p.text(),
    user_name: p.text(),
    run: p.text(),
    steers: p.boolean(),
    created_at_ms: time(),
    body: p.text(),
  },
});

export const AttemptEntity = defineEntity({
  name: 'Attempt',
  tableName: 'attempts',
  properties: {
    run: ofRun().primary(),
    fence: p.integer().primary(),
    placement: p.text().nullable(),
    engine: p.text().nullable(),
    sandbox: p.text().nullable(),
    holder: p.text(),
    started_at_ms: time(),
    ended_at_ms: time().nullable(),
    outcome: p.text().nullable(),
  },
});

export const DecisionEntity = defineEntity({
  name: 'Decision',
  tableName: 'decisions',
  properties: {
    run: ofRun().primary(),
    position: p.integer().primary(),
    id: p.text().unique(),
    capability: p.text(),
    input_digest: p.text(),
    at_ms: time(),
    decision: p.text(),
    kind: p.text().default('call'),
    input: p.text().nullable(),
  },
  indexes: [{ name: 'decisions_at', properties: ['at_ms'] }],
});

export const CallEntity = defineEntity({
  name: 'Call',
  tableName: 'calls',
  properties: {
    run: ofRun().primary(),
    step: p.integer().primary(),
    call: p.integer().primary(),
    id: p.text().unique(),
    fence: p.integer(),
    capability: p.text(),
    effect_class: p.text(),
    args_digest: p.text(),
    state: p.text(),
    decision: p.text(),
    permit: p.text().nullable(),
    opened_at_ms: time(),
    closed_at_ms: time().nullable(),
    summary: p.text(),
    outcome: p.text().nullable(),
  },
  indexes: [{ name: 'calls_unknown', properties: ['run'], where: "state = 'unknown'" }],
});

export const PermitEntity = defineEntity({
  name: 'Permit',
  tableName: 'permits',
  properties: {
    id: p.text().primary(),
    run: ofRun(),
    fence: p.integer(),
    call: p.text(),
    /** `claimed` until `close` (then `closed`) or `judge` (then `void`). */
    state: p.text(),
    deadline_ms: time(),
    claimed_at_ms: time(),
    closed_at_ms: time().nullable(),
    /** Amounts by dimension, and until when they count (S18). */
    spent: p.text().nullable(),
    spent_at_ms: time().nullable(),
  },
  indexes: [
    { name: 'permits_spent', properties: ['spent_at_ms'], where: 'spent_at_ms is not null' },
    { name: 'permits_run', properties: ['run'] },
  ],
});

export const CheckpointEntity = defineEntity({
  name: 'Checkpoint',
  tableName: 'checkpoints',
  properties: {
    run: ofRun().primary(),
    position: p.integer().primary(),
    id: p.text().unique(),
    fence: p.integer(),
    schema_name: p.text(),
    version: p.integer(),
    ledger_position: p.integer(),
    safe: p.boolean(),
    sha256: p.text(),
    created_at_ms: time(),
    body: p.text(),
  },
});

export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  properties: {
    cursor: p.integer().primary().autoincrement(false),
    at_ms: time(),
    type: p.text(),
    tenant: p.text().nullable(),
    thread: p.text().nullable(),
    run: p.text().nullable(),
    data: p.text(),
  },
  indexes: [
    { name: 'events_thread', properties: ['thread', 'cursor'] },
    { name: 'events_run', properties: ['run', 'cursor'] },
    { name: 'events_loose', properties: ['at_ms'], where: 'thread is null' },
  ],
});

export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'deliveries',
  properties: {
    id: p.text().primary(),
    position: p.integer().unique(),
    tenant: inTenant(),
    thread: inThread(),
    run: ofRun(),
    user_name: p.text(),
    message: p.text(),
    state: p.text(),
    /** Store instance that claimed it. */
    sender: p.text().nullable(),
    attempts: p.integer(),
    created_at_ms: time(),
    updated_at_ms: time(),
    body: p.text(),
    kind: p.text().default('reply'),
    approval: p.text().nullable(),
  },
  indexes: [
    { name: 'deliveries_run', properties: ['run'] },
    { name: 'deliveries_prepared', properties: ['attempts', 'position'], where: "state = 'prepared'" },
    { name: 'deliveries_open', properties: ['thread', 'position'], where: "state in ('prepared', 'sending')" },
  ],
});

export const ApprovalEntity = defineEntity({
  name: 'Approval',
  tableName: 'approvals',
  properties: {
    id: p.text().primary(),
    position: p.integer().unique(),
    tenant: inTenant(),
    run: ofRun(),
    /** Id of the ledger row; its key follows. */
    call: p.text(),
    step: p.integer(),
    call_index: p.integer(),
    actor: p.text(),
    state: p.text(),
    created_at_ms: time(),
    expires_at_ms: time(),
    answered_at_ms: time().nullable(),
    answered_by: p.text().nullable(),
    answer_decision: p.text().nullable(),
    note: p.text().nullable(),
    use_by_ms: time().nullable(),
    ended_at_ms: time().nullable(),
    /** The rest, which never changes. */
    asked: p.text(),
  },
  indexes: [
    { name: 'approvals_run', properties: ['run', 'step', 'call_index'] },
    { name: 'approvals_tenant', properties: ['tenant', 'position'] },
    { name: 'approvals_live', properties: ['expires_at_ms'], where: "state in ('pending', 'approved')" },
  ],
  // The second guard of S12.
  uniques: [{ name: 'approvals_one_live_per_call', properties: ['call'], where: "state in ('pending', 'approved')" }],
});

export const ApprovalFileEntity = defineEntity({
  name: 'ApprovalFile',
  tableName: 'approval_files',
  properties: { sha256: p.text().primary(), created_at_ms: time(), body: p.text() },
});

/** Which ask is bound to which file: a file goes with the last of them. */
export const ApprovalUseEntity = defineEntity({
  name: 'ApprovalUse',
  tableName: 'approval_uses',
  properties: { sha256: p.text().primary(), approval: p.text().primary() },
});

export const ENTITIES = [
  TenantEntity,
  UserEntity,
  UserTokenEntity,
  ThreadEntity,
  RunEntity,
  MessageEntity,
  AttemptEntity,
  DecisionEntity,
  CallEntity,
  PermitEntity,
  CheckpointEntity,
  EventEntity,
  DeliveryEntity,
  ApprovalEntity,
  ApprovalFileEntity,
  ApprovalUseEntity,
];

export type UserRecord = InferEntity<typeof UserEntity>;
export type ThreadRecord = InferEntity<typeof ThreadEntity>;
export type RunRecord = InferEntity<typeof RunEntity>;
export type MessageRecord = InferEntity<typeof MessageEntity>;
export type AttemptRecord = InferEntity<typeof AttemptEntity>;
export type DecisionRecord = InferEntity<typeof DecisionEntity>;
export type CallRecord = InferEntity<typeof CallEntity>;
export type PermitRecord = InferEntity<typeof PermitEntity>;
export type CheckpointRecord = InferEntity<typeof CheckpointEntity>;
export type EventRecord = InferEntity<typeof EventEntity>;
export type DeliveryRecord = InferEntity<typeof DeliveryEntity>;
export type ApprovalRecord = InferEntity<typeof ApprovalEntity>;
