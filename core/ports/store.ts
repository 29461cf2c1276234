import type { Approval, NewApproval } from '../approval/types.ts';
import type { Amounts, Spent } from '../capability/ceilings.ts';
import type { CallKey, CapabilityName, EffectClass, Reason } from '../capability/types.ts';
import type { KernelEvent, NewEvent } from '../events.ts';
import type { Json } from '../json.ts';
import type { PolicyKind } from '../policy/contracts.ts';
import type { Decision, PolicyInput } from '../policy/types.ts';
import type {
  Attempt,
  AttemptRef,
  ClaimedRun,
  EngineName,
  Gate,
  GateKind,
  Message,
  Origin,
  PlacementName,
  Role,
  Run,
  RunState,
  Thread,
  User,
} from '../run/types.ts';
import type { DeliveryItem } from '../seams/delivery.ts';
import type { ApprovalStore } from './approval-store.ts';
import type { RetentionStore } from './retention-store.ts';

/**
 * Durable state, the one source of truth. Every method is one transaction; it has happened, synchronously durable, when its promise resolves.
 *
 * - S1 `claim` gives one run to one holder with a fence one higher than before; never a run whose thread has an active run,
 *   never more than `perUser` runs of one user at work (`running`, `cancelling`), oldest message first. A parked run takes no room.
 * - S2 every write that takes an `AttemptRef` is refused with `stale_fence` unless that attempt is the run's current one and the run is
 *   `running` or `cancelling`; nothing is changed then.
 * - S3 a transition that `TRANSITIONS` does not list is refused with `illegal_transition`.
 * - S4 an expired lease is reclaimed by `expire` only: back to `queued` while the reclaim budget lasts, else `failed`; a cancelling run ends `cancelled`.
 * - S5 a ledger row is opened once per key; again under the same digest it tells the row's state, under another digest `nondeterministic`.
 * - S6 a permit is claimed once and closed once, by compare-and-swap, before its deadline.
 * - S7 `judge` leaves no row of the run `dispatched`: `once` → `unknown`, others → `prepared`.
 * - S8 events are appended with a gapless, growing cursor, and the event of a write is durable with it.
 * - S9 text that the database would change (NUL, lone surrogate) is refused with `text_unstorable`.
 * - S10 a checkpoint that does not match its checksum is refused with `checkpoint_damaged`; `latest` then gives the previous good one when the
 *   ledger is at or after it. The write that ends a run removes its checkpoints.
 * - S11 a delivery is made with its message in one transaction, is sent by whoever turns it `prepared → sending` by compare-and-swap, and
 *   one that a dead kernel left `sending` becomes `unknown`: it is never sent again by itself.
 * - S12 to S17: `ApprovalStore`.
 * - S18 what a call reserved is kept with its permit from `open` on, and replaced by what it spent in `close`. `spent` adds up, by thread and
 *   actor, what was closed at `sinceMs` or later, and what never was and could have gone on until then: that counts in full.
 * - S19 and S20: `RetentionStore`.
 *
 * Methods without an `event` parameter append their own: `add` `user.added`, `addToken` `user.token_issued`, `revokeTokens`
 * `user.tokens_revoked`, `setDisabled` `user.disabled | user.enabled`, `post` `message.posted` and `run.queued`, `steer` `run.steered`,
 * `claim` `run.claimed`, `expire` `run.reclaimed | run.failed | run.cancelled`, `judge` `call.unknown` a row, `sweep` `delivery.unknown` a
 * row; `close` with effect `message` appends `message.posted` after its own.
 * Beside the codes named below any method may reject with `disk_full` (retryable) or `store_unavailable`; nothing was changed then.
 */
export interface Store {
  readonly users: UserStore;
  readonly threads: ThreadStore;
  readonly runs: RunStore;
  readonly calls: CallStore;
  readonly decisions: DecisionStore;
  readonly approvals: ApprovalStore;
  readonly checkpoints: CheckpointStore;
  readonly events: EventStore;
  readonly deliveries: DeliveryStore;
  readonly retention: RetentionStore;
  /** Makes one durable write that changes nothing. @throws StoreError `disk_full` `store_unavailable`: the store cannot write */
  probe(): Promise<void>;
  close(): Promise<void>;
}

export interface UserStore {
  /** @throws StoreError `conflict` when the user exists. The slice is the lowest free one. */
  add(user: { tenant: string; name: string; roles: readonly Role[]; nowMs: number }): Promise<User>;
  get(tenant: string, name: string): Promise<User | undefined>;
  list(tenant?: string): Promise<readonly User[]>;
  /** Keeps only the token's digest. */
  addToken(token: { tenant: string; user: string; digest: string; expiresAtMs: number; nowMs: number }): Promise<void>;
  /** The user whom a token names now: not after its end, not after its revocation, not while the user is disabled. */
  findByToken(digest: string, nowMs: number): Promise<User | undefined>;
  /** Ends every token of the user. @returns how many there were. @throws StoreError `not_found` */
  revokeTokens(user: { tenant: string; name: string; nowMs: number }): Promise<number>;
  /** A disabled user's tokens name nobody; rows and runs stay. Saying it again changes nothing. @throws StoreError `not_found` */
  setDisabled(user: { tenant: string; name: string; disabled: boolean; nowMs: number }): Promise<User>;
}

export interface PostedMessage {
  readonly thread: Thread;
  readonly message: Message;
  readonly run: Run;
}

export interface ThreadStore {
  /** Appends the message and creates its `queued` run; makes the thread when none is named. @throws StoreError `not_found` (thread, actor) */
  post(post: {
    tenant: string;
    thread?: string;
    actor: string;
    origin: Origin;
    body: string;
    placement?: PlacementName;
    harness?: string;
    nowMs: number;
  }): Promise<PostedMessage>;
  /** Adds a steering message for a run that has not ended, by its own actor only. @throws StoreError `not_found` `conflict` */
  steer(steer: { tenant: string; run: string; actor: string; body: string; nowMs: number }): Promise<Message>;
  get(tenant: string, id: string): Promise<Thread | undefined>;
  /** Newest first; with `actor` only threads in which a run acts for that user. */
  list(tenant: string, limit: number, actor?: string): Promise<readonly Thread[]>;
  /** Messages in order of `seq`; the newest `limit` of those after `afterSeq`. */
  messages(thread: string, options: { afterSeq?: number; limit: number }): Promise<readonly Message[]>;
}

export interface RunChange {
  readonly to: Exclude<RunState, 'running'>;
  readonly gate?: Gate;
  readonly failure?: string;
  readonly event: NewEvent;
}

export interface RunCount {
  readonly state: RunState;
  /** Set when `state` is `parked`. */
  readonly gate: GateKind | undefined;
  readonly count: number;
}

export interface RunStore {
  /**
   * S1. Active means `ACTIVE_STATES`; within a thread runs are claimed in order. `deadlineMs` is a point in time and counts at the first
   * claim only.
   */
  claim(claim: { holder: string; nowMs: number; leaseMs: number; deadlineMs: number; perUser: number }): Promise<ClaimedRun | undefined>;
  /** Extends the lease. @returns whether cancellation was requested. @throws StoreError `lease_lost` */
  heartbeat(ref: AttemptRef, nowMs: number, leaseMs: number): Promise<{ cancelRequested: boolean }>;
  /** Records on the attempt where it runs. */
  seat(
    ref: AttemptRef,
    seat: { placement: PlacementName; engine: EngineName; sandbox?: string; event: NewEvent; nowMs: number },
  ): Promise<void>;
  /** Ends the attempt and moves the run. `reclaim` counts against the budget. */
  settle(ref: AttemptRef, change: RunChange & { reclaim?: boolean; outcome: string; nowMs: number }): Promise<Run>;
  /** Moves a run that no attempt holds (`queued`, `parked`), or asks a running one to cancel. @throws StoreError `illegal_transition` `not_found` */
  move(run: string, change: RunChange & { from: readonly RunState[]; nowMs: number }): Promise<Run>;
  /** Marks cancellation: queued and parked runs end at once, running ones become `cancelling`; ended ones stay. */
  requestCancel(run: string, event: NewEvent, nowMs: number): Promise<Run>;
  /**
   * S4. Ends every attempt whose lease is over at `nowMs`, with the outcome `lease_expired`. A lease that lies further ahead than its own
   * length (the clock was set back) is cut to that length.
   * @param soleHolder - given by a kernel that alone owns this state: leases of any other holder are a dead kernel's, and over at once.
   * @returns the runs it moved.
   */
  expire(nowMs: number, reclaimBudget: number, soleHolder?: string): Promise<readonly Run[]>;
  get(run: string): Promise<Run | undefined>;
  /** Newest first. */
  list(filter: { tenant?: string; thread?: string; actor?: string; states?: readonly RunState[]; limit: number }): Promise<readonly Run[]>;
  /** Every run that is parked at a gate of this kind, oldest message first. */
  parkedAt(gate: GateKind): Promise<readonly Run[]>;
  /** How many runs are in each state that is not an end, parked ones by gate. States without a run are left out. */
  unfinished(): Promise<readonly RunCount[]>;
  attempts(run: string): Promise<readonly Attempt[]>;
  /** Where each of these runs was seated last; one that never was is left out. */
  lastSeats(runs: readonly string[]): Promise<ReadonlyMap<string, PlacementName>>;
}

export type CallState = 'prepared' | 'dispatched' | 'done' | 'unknown';

export interface CallRow {
  readonly id: string;
  readonly run: string;
  readonly fence: number;
  readonly key: CallKey;
  readonly capability: CapabilityName;
  readonly effectClass: EffectClass;
  readonly argsDigest: string;
  readonly state: CallState;
  /** Recorded result: `{result}` of an executed call, `{denied}` of a refused one. */
  readonly outcome: RecordedOutcome | undefined;
  /** Bounded human-readable argument projection, kept as evidence. */
  readonly summary: string;
  readonly decision: string;
  readonly permit: string | undefined;
  readonly openedAtMs: number;
  readonly closedAtMs: number | undefined;
}

export type RecordedOutcome =
  | {
      readonly kind: 'result';
      readonly result: Json /** Who says so: kernel evidence or an executor's claim. */;
      readonly source: 'kernel' | 'claimed';
    }
  | { readonly kind: 'denied'; readonly reasons: readonly Reason[] }
  | { readonly kind: 'error'; readonly code: string; readonly message: string };

export interface DecisionRow {
  readonly id: string;
  readonly run: string;
  readonly kind: PolicyKind;
  /** Of a call its capability; of another kind what was asked about (the placement's name). */
  readonly capability: string;
  readonly inputDigest: string;
  /** What was asked, live secrets replaced; absent when only its digest is kept (config `policy.logInput`). */
  readonly input?: PolicyInput;
  readonly decision: Decision;
  readonly atMs: number;
}

/** Every decision of policy. Those of calls are written by `CallStore.open` in the write that opens the call. */
export interface DecisionStore {
  /**
   * A decision about something that is no call. With `ref` only while that attempt holds the run (S2).
   * @throws StoreError `stale_fence`; `not_found` (run); `conflict` (id in use)
   */
  add(decision: DecisionRow, ref?: AttemptRef): Promise<void>;
  get(id: string): Promise<DecisionRow | undefined>;
  /** The newest `limit` decisions made at `sinceMs` or later, oldest first. */
  since(sinceMs: number, limit: number): Promise<readonly DecisionRow[]>;
}

export interface OpenCall {
  readonly key: CallKey;
  readonly capability: CapabilityName;
  readonly effectClass: EffectClass;
  readonly argsDigest: string;
  readonly summary: string;
  readonly decision: Omit<DecisionRow, 'run' | 'kind' | 'capability' | 'atMs'>;
  /** Sealed and claimed in the same write; absent when the call is recorded `done` at once (a deny). */
  readonly permit?: { readonly id: string; readonly deadlineMs: number };
  /** Set for a refused call: the row is written `done`. */
  readonly outcome?: RecordedOutcome;
  /** Set for a call that waits for a person: the row is written `prepared` (S12). */
  readonly ask?: NewApproval;
  /** Set for a call that stops at a gate of another kind (a missing credential): the row is written `prepared`, and what was approved of it stays. */
  readonly gate?: Gate;
  /** With a permit: what lets this call happen; consumed in this write (S14). */
  readonly approval?: Pick<Approval, 'id' | 'fingerprint'>;
  /** A call whose whole effect is on the store: it is opened, closed `done` and takes effect in this one write, under its permit. */
  readonly closing?: Pick<CloseCall, 'outcome' | 'effect' | 'event'>;
  /** With a permit: what it may spend at most of what is metered (S18). */
  readonly reserved?: Amounts;
  readonly event: NewEvent;
  readonly nowMs: number;
}

export type OpenResult =
  /** The row is `dispatched` under this attempt: dispatch it. */
  | { readonly kind: 'opened'; readonly row: CallRow }
  /** The row is `done`: give its outcome. */
  | { readonly kind: 'recorded'; readonly row: CallRow }
  /** The row is `unknown`, or `dispatched` under this very attempt. */
  | { readonly kind: 'unknown' | 'in_flight'; readonly row: CallRow }
  | { readonly kind: 'nondeterministic'; readonly row: CallRow }
  /** The row is `prepared` and waits for this ask. */
  | { readonly kind: 'parked'; readonly row: CallRow; readonly approval: Approval }
  /** The row is `prepared` and waits at the gate it was opened with. */
  | { readonly kind: 'waiting'; readonly row: CallRow; readonly gate: Gate };

/** An effect on the store itself, made in the same transaction as the row's end, so it can be neither lost nor doubled. */
export type StoreEffect =
  | { readonly kind: 'message'; readonly body: string }
  | { readonly kind: 'checkpoint'; readonly schema: string; readonly version: number; readonly body: string };

export interface CloseCall {
  readonly permit: string;
  readonly outcome: RecordedOutcome;
  readonly state: 'done' | 'unknown';
  readonly effect?: StoreEffect;
  /** What it has spent of what is metered, in place of what was reserved (S18). */
  readonly spent?: Amounts;
  readonly event: NewEvent;
  readonly nowMs: number;
}

export interface CallStore {
  /** S5. @throws StoreError `stale_fence`; `permit_expired` (its deadline has passed); `conflict` (permit or decision id in use); `approval_unusable` (S14) */
  open(ref: AttemptRef, call: OpenCall): Promise<OpenResult>;
  /** Looks a key up without writing; used before policy is asked, so that a redrive replays. */
  find(run: string, key: CallKey): Promise<CallRow | undefined>;
  /**
   * Closes permit and row by compare-and-swap and applies `effect`.
   * After the permit's deadline only the state `unknown` is accepted.
   * @throws StoreError `stale_fence`; `not_found` (no such permit of this run); `conflict` (already closed); `permit_expired`
   */
  close(ref: AttemptRef, close: CloseCall): Promise<CallRow>;
  /** S7. Called once before an attempt is seated. @returns the rows that became `unknown`. */
  judge(ref: AttemptRef, nowMs: number): Promise<readonly CallRow[]>;
  /** A person ends an `unknown` row: `done` records that it happened, `not-done` lets it run again. @throws StoreError `conflict` `not_found` */
  resolve(call: string, as: 'done' | 'not-done', event: NewEvent, nowMs: number): Promise<CallRow>;
  list(run: string): Promise<readonly CallRow[]>;
  decisions(run: string): Promise<readonly DecisionRow[]>;
  /** S18. Lines in no order; several may tell of one thread and actor. */
  spent(sinceMs: number): Promise<readonly Spent[]>;
}

export interface Checkpoint {
  readonly id: string;
  readonly run: string;
  readonly fence: number;
  readonly schema: string;
  readonly version: number;
  readonly body: string;
  /** Rows of the ledger that were `done` when it was written. */
  readonly ledgerPosition: number;
  /** Written while no `once` row was `dispatched`. */
  readonly safe: boolean;
  readonly createdAtMs: number;
}

export interface CheckpointStore {
  /** The newest undamaged safe checkpoint of the run (S10); undefined when the run has none at all. @throws StoreError `checkpoint_damaged` */
  latest(run: string): Promise<Checkpoint | undefined>;
}

export interface EventFilter {
  readonly tenant?: string;
  readonly thread?: string;
  readonly run?: string;
}

export interface EventStore {
  append(event: NewEvent, nowMs: number): Promise<KernelEvent>;
  /** Events with a cursor greater than `from`, in order. */
  read(from: number, filter: EventFilter, limit: number): Promise<readonly KernelEvent[]>;
  /** The newest event of all, or of one thread or run. Cheap however long the log is. */
  last(filter?: Pick<EventFilter, 'thread' | 'run'>): Promise<KernelEvent | undefined>;
  /** Resolves when an event newer than `from` may exist, or the signal aborts. A hint only. */
  changed(from: number, signal: AbortSignal): Promise<void>;
}

export type DeliveryState = 'prepared' | 'sending' | 'delivered' | 'unknown';

export interface DeliveryRow extends DeliveryItem {
  /** Empty for an ask, which is no message of the thread. */
  readonly message: string;
  readonly state: DeliveryState;
  /** How often it was claimed. */
  readonly attempts: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * Replies and asks on their way to a channel. A row is made by `CallStore.close` with effect `message`, by `CallStore.open` with a new ask,
 * and by nothing else.
 */
export interface DeliveryStore {
  /**
   * Claims one `prepared` row for this store instance: the one tried least often, then the oldest; never past an unfinished older one of
   * the same thread.
   */
  next(nowMs: number): Promise<DeliveryRow | undefined>;
  /** Ends a claimed delivery; `prepared` puts one back that surely was not sent. @throws StoreError `not_found`; `conflict` (not `sending`) */
  finish(id: string, to: 'delivered' | 'prepared' | 'unknown', event: NewEvent, nowMs: number): Promise<DeliveryRow>;
  /** Turns every row that another store instance left `sending` into `unknown`. @returns those rows. */
  sweep(nowMs: number): Promise<readonly DeliveryRow[]>;
  /** Newest first. */
  list(filter: { tenant?: string; run?: string; states?: readonly DeliveryState[]; limit: number }): Promise<readonly DeliveryRow[]>;
}
