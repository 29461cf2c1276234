import type { Json } from '../json.ts';
import type { EngineName, Gate, Origin, PlacementName, Role } from '../run/types.ts';

export const CAPABILITIES = [
  'model.generate',
  'shell.exec',
  'fs.read',
  'fs.write',
  'fs.list',
  'message.post',
  'thread.read',
  'checkpoint.save',
] as const;
export type CapabilityName = (typeof CAPABILITIES)[number];

/** `pure` and `idempotent` calls run again on redrive; a `once` call that may have started parks as `unknown`. */
export type EffectClass = 'pure' | 'idempotent' | 'once';

/** Who may make a call: an executor through the membrane, the product (API, console), or the operator. */
export type Caller = 'executor' | 'product' | 'operator';

/** Who makes a decision effective; printed by `compare`. */
export type Enforcer = 'kernel' | 'proxy' | 'wall' | 'executor';

/** Key of a call within its run, counted by the loop (never by the model): iteration and index, both from 0. */
export interface CallKey {
  readonly step: number;
  readonly call: number;
}

export interface CallRequest {
  readonly key: CallKey;
  readonly capability: string;
  readonly args: Json;
}

/** Everything the kernel knows of who calls. Built from token and socket; nothing here comes from a payload. */
export interface CallScope {
  readonly tenant: string;
  readonly user: string;
  readonly roles: readonly Role[];
  readonly thread: string;
  readonly run: string;
  readonly fence: number;
  readonly origin: Origin;
  readonly placement: PlacementName;
  readonly engine: EngineName;
  readonly wall: string;
  readonly caller: Caller;
  /** Hard end of the run. */
  readonly deadlineMs: number;
  /** Generation of the sandbox that serves the run; undefined only before one exists. */
  readonly sandbox: string | undefined;
}

export interface Reason {
  readonly code: string;
  readonly message: string;
}

/** What the executor gets back. A deny is a result the model may read; it does not end the run. */
export type CallReply =
  | {
      readonly effect: 'done';
      readonly result: Json;
      readonly replayed: boolean;
      /** Steering may wait for this run: `steer.next` would give it. */
      readonly steering?: true;
    }
  | { readonly effect: 'permit'; readonly permit: LocalPermit }
  | { readonly effect: 'denied'; readonly reasons: readonly Reason[] }
  | { readonly effect: 'parked'; readonly gate: Gate };

/** The executor's side of a permit for a local command. `id` is all it holds; the bounds are enforced again by the kernel. */
export interface LocalPermit {
  readonly id: string;
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly outputBytes: number;
}
  /** What to start in place of the arguments that were asked for: approved files stand where their names did. */
  readonly argv?: readonly string[];

export interface ShellExecArgs {
  readonly argv: readonly string[];
  /** Relative to the workspace; default is its root. */
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string };
  readonly stdin?: string;
  readonly timeoutMs?: number;
  readonly outputBytes?: number;
  /** Declared background: outlives the call (and in `persistent-per-user` the run). */
  readonly background?: boolean;
}

/** How a command ended. `exitCode` is null unless the process exited by itself; unknown is never success. */
export interface CommandOutcome {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly truncated: boolean;
  /** The child's own wall time, from before its spawn to its end. */
  readonly wallMs: number;
  /** In-namespace pid and log path, for a background command only. */
  readonly background?: { readonly pid: number; readonly log: string };
}
