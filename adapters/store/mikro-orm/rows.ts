import type { KernelEvent } from '../../../core/events.ts';
import type { CallRow, Checkpoint, DecisionRow, DeliveryRow } from '../../../core/ports/store.ts';
import type { Attempt, Message, Run, Thread, User } from '../../../core/run/types.ts';
import type {
  AttemptRecord,
  CallRecord,
  CheckpointRecord,
  DecisionRecord,
  DeliveryRecord,
  EventRecord,
  MessageRecord,
  RunRecord,
  ThreadRecord,
  UserRecord,
} from './entities.ts';

/**
 * Rows to the words of core, whether an entity or a bound statement gave them (the latter has 0 and 1 for booleans). The closed unions are
 * not checked again: only this store writes the file, from values that had those types.
 */

const orUndefined = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

export const toUser = (row: UserRecord): User => ({
  tenant: row.tenant,
  name: row.name,
  roles: JSON.parse(row.roles),
  disabled: Boolean(row.disabled),
  slice: row.slice,
  createdAtMs: row.created_at_ms,
});

export const toThread = (row: ThreadRecord): Thread => ({ id: row.id, tenant: row.tenant, createdAtMs: row.created_at_ms });

export const toMessage = (row: MessageRecord): Message => ({
  id: row.id,
  thread: row.thread,
  seq: row.seq,
  author: row.author as Message['author'],
  user: row.user_name,
  run: row.run,
  body: row.body,
  steers: Boolean(row.steers),
  createdAtMs: row.created_at_ms,
});

export const toRun = (row: RunRecord): Run => ({
  id: row.id,
  tenant: row.tenant,
  thread: row.thread,
  actor: row.actor,
  origin: row.origin as Run['origin'],
  message: row.message,
  state: row.state as Run['state'],
  gate: row.gate == null ? undefined : JSON.parse(row.gate),
  fence: row.fence,
  reclaims: row.reclaims,
  leaseHolder: orUndefined(row.lease_holder),
  leaseUntilMs: orUndefined(row.lease_until_ms),
  deadlineMs: orUndefined(row.deadline_ms),
  placement: orUndefined(row.placement) as Run['placement'],
  harness: orUndefined(row.harness),
  cancelRequested: Boolean(row.cancel_requested),
  createdAtMs: row.created_at_ms,
  endedAtMs: orUndefined(row.ended_at_ms),
  failure: orUndefined(row.failure),
});

export const toAttempt = (row: AttemptRecord): Attempt => ({
  run: row.run,
  fence: row.fence,
  placement: orUndefined(row.placement) as Attempt['placement'],
  engine: orUndefined(row.engine) as Attempt['engine'],
  sandbox: orUndefined(row.sandbox),
  holder: row.holder,
  startedAtMs: row.started_at_ms,
  endedAtMs: orUndefined(row.ended_at_ms),
  outcome: orUndefined(row.outcome),
});

export const toCall = (row: CallRecord): CallRow => ({
  id: row.id,
  run: row.run,
  fence: row.fence,
  key: { step: row.step, call: row.call },
  capability: row.capability as CallRow['capability'],
  effectClass: row.effect_class as CallRow['effectClass'],
  argsDigest: row.args_digest,
  state: row.state as CallRow['state'],
  outcome: row.outcome == null ? undefined : JSON.parse(row.outcome),
  summary: row.summary,
  decision: row.decision,
  permit: orUndefined(row.permit),
  openedAtMs: row.opened_at_ms,
  closedAtMs: orUndefined(row.closed_at_ms),
});

export const toDecision = (row: DecisionRecord): DecisionRow => ({
  id: row.id,
  run: row.run,
  capability: row.capability,
  kind: row.kind as DecisionRow['kind'],
  inputDigest: row.input_digest,
  ...(row.input == null ? {} : { input: JSON.parse(row.input) }),
  decision: JSON.parse(row.decision),
  atMs: row.at_ms,
});

export const toCheckpoint = (row: CheckpointRecord): Checkpoint & { readonly sha256: string } => ({
  id: row.id,
  run: row.run,
  fence: row.fence,
  schema: row.schema_name,
  version: row.version,
  body: row.body,
  ledgerPosition: row.ledger_position,
  safe: Boolean(row.safe),
  createdAtMs: row.created_at_ms,
  sha256: row.sha256,
});

export const toEvent = (row: EventRecord): KernelEvent => ({
  cursor: row.cursor,
  atMs: row.at_ms,
  type: row.type as KernelEvent['type'],
  ...(row.tenant == null ? {} : { tenant: row.tenant }),
  ...(row.thread == null ? {} : { thread: row.thread }),
  ...(row.run == null ? {} : { run: row.run }),
  data: JSON.parse(row.data),
});

export const toDelivery = (row: DeliveryRecord): DeliveryRow => ({
  id: row.id,
  tenant: row.tenant,
  thread: row.thread,
  run: row.run,
  user: row.user_name,
  body: row.body,
  kind: row.kind as DeliveryRow['kind'],
  ...(row.approval == null ? {} : { approval: row.approval }),
  message: row.message,
  state: row.state as DeliveryRow['state'],
  attempts: row.attempts,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});
