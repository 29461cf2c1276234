/** Words of a run's life. ARCHITECTURE.md explains them; this file is what the code means by them. */

export const PLACEMENTS = ['host-loop-shell', 'disposable-per-run', 'persistent-per-user'] as const;
export type PlacementName = (typeof PLACEMENTS)[number];

/** Harnesses that are built: in the kernel process (`adapters/compose.ts`) and in the guest (`harnesses/guest/harnesses.ts`). */
export const HARNESSES = ['scripted'] as const;

export type EngineName = 'bubblewrap' | 'docker';

export type RunState = 'queued' | 'running' | 'parked' | 'cancelling' | 'completed' | 'failed' | 'cancelled';

/** Legal transitions. Each is one guarded, fenced write. `running → queued` is a reclaim of an expired lease. */
export const TRANSITIONS: Readonly<Record<RunState, readonly RunState[]>> = {
  queued: ['running', 'cancelled'],
  running: ['queued', 'parked', 'cancelling', 'completed', 'failed'],
  parked: ['queued', 'cancelled', 'failed'],
  cancelling: ['cancelled', 'completed', 'failed'],
  completed: [],
  failed: [],
  cancelled: [],
};

/** States that hold the thread: at most one run of a thread is in one of these, whoever its actor is. */
export const ACTIVE_STATES = ['running', 'parked', 'cancelling'] as const satisfies readonly RunState[];

export const isTerminal = (state: RunState): boolean => TRANSITIONS[state].length === 0;

export type GateKind = 'approval' | 'credential' | 'setup' | 'unknown' | 'resource';

/** What a parked run waits for. `ref` names what ends it: a call for `unknown`, an ask for `approval`, a recipe for `credential`. */
export interface Gate {
  readonly kind: GateKind;
  readonly ref: string;
  readonly reason: string;
}

/** Where a run came from; policy reads it. */
export type Origin = 'interactive' | 'trigger' | 'operator';

export interface Run {
  readonly id: string;
  readonly tenant: string;
  readonly thread: string;
  /** The user this run acts for. Minted at ingress. */
  readonly actor: string;
  readonly origin: Origin;
  readonly message: string;
  readonly state: RunState;
  readonly gate: Gate | undefined;
  /** Number of the current or last attempt; 0 before the first claim. */
  readonly fence: number;
  /** Attempts that ended by lease expiry or executor loss. */
  readonly reclaims: number;
  readonly leaseHolder: string | undefined;
  readonly leaseUntilMs: number | undefined;
  /** Hard end of the run, set at the first claim. */
  readonly deadlineMs: number | undefined;
  readonly placement: PlacementName | undefined;
  readonly harness: string | undefined;
  readonly cancelRequested: boolean;
  readonly createdAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Code of a failure; undefined otherwise. */
  readonly failure: string | undefined;
}

/** One lease of one run. The pair is what every later write is fenced by. */
export interface AttemptRef {
  readonly run: string;
  readonly fence: number;
}

export interface Attempt extends AttemptRef {
  readonly placement: PlacementName | undefined;
  readonly engine: EngineName | undefined;
  readonly sandbox: string | undefined;
  readonly holder: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly outcome: string | undefined;
}

export interface ClaimedRun extends Run {
  readonly leaseHolder: string;
  readonly leaseUntilMs: number;
  readonly deadlineMs: number;
}

/** What an executor says at its end. An untrusted claim, checked against evidence by settle. */
export type ExitClaim =
  | { readonly kind: 'completed' }
  | { readonly kind: 'parked' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

/** What the kernel itself saw of an executor's end. */
export type ExecutorOutcome =
  | { readonly kind: 'exited'; readonly claim: ExitClaim }
  /** The executor, its sandbox or its connection died without an exit. */
  | {
      readonly kind: 'lost';
      readonly reason: string;
      /** The sandbox is sound all the same: only the work of this run was stopped. */
      readonly intact?: true;
    };

export interface User {
  readonly tenant: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly disabled: boolean;
  /** Index of the user's own slice of the sub-id range; unique on this host. */
  readonly slice: number;
  readonly createdAtMs: number;
}

export type Role = 'user' | 'approver' | 'operator' | 'policy';

export interface Thread {
  readonly id: string;
  readonly tenant: string;
  readonly createdAtMs: number;
}

export interface Message {
  readonly id: string;
  readonly thread: string;
  /** Position in the thread, from 1. */
  readonly seq: number;
  readonly author: 'user' | 'agent';
  /** The user who wrote it, or for whom the agent wrote it. */
  readonly user: string;
  readonly run: string;
  readonly body: string;
  /** Steering reaches the named run at its next step; it is no turn of its own. */
  readonly steers: boolean;
  readonly createdAtMs: number;
}
