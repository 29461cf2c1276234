import type { CompiledConfig } from './config.ts';
import type { KernelEvent } from './events.ts';
import type { PolicyStatus } from './policy/types.ts';
import type { CallRow, DecisionRow, EventFilter } from './ports/store.ts';
import type { Attempt, Message, Origin, PlacementName, Role, Run, RunState, Thread, User } from './run/types.ts';

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

/**
 * The operations of a kernel: what the command line, the API and the console do. The command line uses it in-process, or through the
 * operator socket of the kernel that owns the state directory; both are this interface.
 */
export interface KernelOperations {
  /** @throws UsageError `not_found` (user, thread) */
  post(request: PostRequest): Promise<{ readonly thread: Thread; readonly message: Message; readonly run: Run }>;
  /** @throws UsageError `not_found` */
  showRun(run: string): Promise<RunView>;
  listRuns(filter: { tenant?: string; thread?: string; states?: readonly RunState[]; limit: number }): Promise<readonly Run[]>;
  cancelRun(run: string): Promise<Run>;
  steerRun(steer: { tenant: string; run: string; user: string; body: string }): Promise<Message>;
  /** Ends an `unknown` call of a parked run. `abort` fails the run. @throws UsageError `not_found` `conflict` */
  resolveRun(run: string, as: 'done' | 'not-done' | 'abort'): Promise<Run>;
  listThreads(tenant: string, limit: number): Promise<readonly Thread[]>;
  showThread(
    tenant: string,
    thread: string,
  ): Promise<{ readonly thread: Thread; readonly messages: readonly Message[]; readonly runs: readonly Run[] }>;
  events(from: number, filter: EventFilter, limit: number): Promise<readonly KernelEvent[]>;
  /** Waits until an event newer than `from` may exist, at most `waitMs`. */
  eventsChanged(from: number, waitMs: number): Promise<void>;
  addUser(user: { tenant: string; name: string; roles: readonly Role[] }): Promise<User>;
  listUsers(tenant?: string): Promise<readonly User[]>;
  /** @returns the bearer token; shown once, stored as a digest. */
  issueToken(user: { tenant: string; name: string; ttlMs: number }): Promise<{ readonly token: string; readonly expiresAtMs: number }>;
  policyStatus(): Promise<PolicyStatus>;
}

/** A kernel in this process. Close it before the process ends. */
export interface Kernel extends KernelOperations, AsyncDisposable {
  readonly config: CompiledConfig;
  /** Starts claiming runs. Before that, operations work and nothing executes. */
  start(): Promise<void>;
  close(): Promise<void>;
}
