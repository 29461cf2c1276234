import type { ApprovalOperations, TokenApprovals } from './approval/operations.ts';
import type { CompiledConfig } from './config.ts';
import type { KernelEvent } from './events.ts';
import type { PolicyOperations } from './policy/operations.ts';
import type { PolicyStatus } from './policy/types.ts';
import type { CallRow, DecisionRow, EventFilter, RunCount } from './ports/store.ts';
import type { Attempt, Message, Origin, PlacementName, Role, Run, RunState, Thread, User } from './run/types.ts';
import type { ImageStatus } from './seams/sandbox-engine.ts';

export interface PostRequest {
  readonly tenant: string;
  readonly user: string;
  readonly body: string;
  readonly thread?: string;
  readonly placement?: PlacementName;
  readonly harness?: string;
  readonly origin?: Origin;
}

/** All that is known of one run, and the answer to "why is it not moving". */
export interface RunView {
  readonly run: Run;
  readonly attempts: readonly Attempt[];
  readonly calls: readonly CallRow[];
  readonly decisions: readonly DecisionRow[];
  readonly lastEvent: KernelEvent | undefined;
  /** One sentence: what has to happen next, and who does it. */
  readonly next: string;
}

/** A run of a list, and where it works. */
export interface ListedRun extends Run {
  /** The placement in which it was seated last; while it never was, the one that config chooses for it. */
  readonly seat: { readonly placement: PlacementName; readonly taken: boolean };
}

/**
 * The operations of a kernel: what the command line, the API and the console do. The command line uses it in-process, or through the
 * operator socket of the kernel that owns the state directory; both are this interface.
 */
export interface KernelOperations extends PolicyOperations, ApprovalOperations {
  /**
   * Verifies what sandboxes are made of and builds it when it must be, or when `force` says so. Sandboxes that run keep theirs.
   * @throws PrerequisiteError `image_unusable` `component_missing` `engine_unavailable`; SandboxError `disk_full`
   */
  buildImage(options: { readonly force: boolean }): Promise<ImageStatus>;
  /** @throws UsageError `not_found` (user, thread) */
  post(request: PostRequest): Promise<{ readonly thread: Thread; readonly message: Message; readonly run: Run }>;
  /** @throws UsageError `not_found` */
  showRun(run: string): Promise<RunView>;
  /** The run alone, where `showRun` reads all that belongs to it. @throws UsageError `not_found` */
  getRun(run: string): Promise<Run>;
  listRuns(filter: {
    tenant?: string;
    thread?: string;
    /** Runs that act for this user. */
    actor?: string;
    states?: readonly RunState[];
    limit: number;
  }): Promise<readonly ListedRun[]>;
  cancelRun(run: string): Promise<Run>;
  steerRun(steer: { tenant: string; run: string; user: string; body: string }): Promise<Message>;
  /** Ends an `unknown` call of a parked run. `abort` fails the run. @throws UsageError `not_found` `conflict` */
  resolveRun(run: string, as: 'done' | 'not-done' | 'abort'): Promise<Run>;
  /** Newest first; with `actor` those in which a run acts for that user. */
  listThreads(tenant: string, limit: number, actor?: string): Promise<readonly Thread[]>;
  showThread(
    tenant: string,
    thread: string,
  ): Promise<{ readonly thread: Thread; readonly messages: readonly Message[]; readonly runs: readonly Run[] }>;
  events(from: number, filter: EventFilter, limit: number): Promise<readonly KernelEvent[]>;
  /** Cursor of the newest event; 0 when there is none. */
  eventsHead(): Promise<number>;
  /** Waits until an event newer than `from` may exist, at most `waitMs`. */
  eventsChanged(from: number, waitMs: number): Promise<void>;
  addUser(user: { tenant: string; name: string; roles: readonly Role[] }): Promise<User>;
  listUsers(tenant?: string): Promise<readonly User[]>;
  /** @returns the bearer token; shown once, stored as a digest. */
  issueToken(user: { tenant: string; name: string; ttlMs: number }): Promise<{ readonly token: string; readonly expiresAtMs: number }>;
  /** Ends every bearer token of the user at once. @throws UsageError `not_found` */
  revokeTokens(user: { tenant: string; name: string }): Promise<{ readonly revoked: number }>;
  /** A disabled user's tokens are refused and nothing is posted for it; what runs goes on. @throws UsageError `not_found` */
  disableUser(user: { tenant: string; name: string; disabled: boolean }): Promise<User>;
  policyStatus(): Promise<PolicyStatus>;
}

/** Who a request comes from, told by its bearer token and by nothing else. */
export interface ApiCaller {
  readonly user: User;
  /** Digest of the token: what limits are counted by. */
  readonly token: string;
}

/** What a kernel can do now; each field is the reason why not, undefined when all is well. */
export interface Readiness {
  readonly store: string | undefined;
  readonly policy: string | undefined;
  readonly engine: string | undefined;
}

/** What is there now, to be counted from outside. */
export interface KernelGauges {
  readonly runs: readonly RunCount[];
  readonly sandboxes: Readonly<Record<SandboxState, number>>;
  readonly policy: PolicyStatus;
}

/** `busy` has a run, `idle` has none and waits for the next. */
export type SandboxState = 'starting' | 'busy' | 'idle' | 'stopping';

/** What a kernel that serves others over a network needs beside its operations. Not part of them: none is reachable by a client. */
export interface Servable extends TokenApprovals {
  /** The caller whom a bearer token names now; undefined for an unknown, ended or revoked token, and for a disabled user. */
  authenticate(token: string): Promise<ApiCaller | undefined>;
  /** Looks at what a run needs; answers are kept for a few seconds, so that asking often costs nothing. */
  readiness(): Promise<Readiness>;
  gauges(): Promise<KernelGauges>;
}

/** A kernel in this process. Close it before the process ends. */
export interface Kernel extends KernelOperations, AsyncDisposable {
  readonly config: CompiledConfig;
  /** Starts claiming runs. Before that, operations work and nothing executes. */
  start(): Promise<void>;
  close(): Promise<void>;
}
