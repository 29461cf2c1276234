import type { Json } from '../json.ts';
import type { EngineName, Gate, Origin, PlacementName, Role } from '../run/types.ts';

export const CAPABILITIES = [
  'model.generate',
  'shell.exec',
  'shell.background',
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
  /** What to start in place of the arguments that were asked for: approved files stand where their names did. */
  readonly argv?: readonly string[];
}

export interface ShellExecArgs {
  readonly argv: readonly string[];
  /** Relative to the workspace; default is its root. */
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string };
  readonly stdin?: string;
  readonly timeoutMs?: number;
  /** Of each stream, the marker of what was left out included. A positive integer, held to [1 KiB, 1 MiB]; of a background command its log. */
  readonly outputBytes?: number;
  /** `keep` leaves escape sequences and other controls in the output; by default they are taken out. */
  readonly controls?: 'keep' | 'strip';
  /** Also writes what the command prints into the workspace: standard output to `path`, standard error to `path` with `.stderr` after it. */
  readonly save?: { readonly path: string; readonly bytes?: number };
  /** Declared background: outlives the call (and in `persistent-per-user` the run). */
  readonly background?: boolean;
  /** When a background command is ended at the latest, from its start. */
  readonly lifetimeMs?: number;
}

/** Arguments of `shell.background`: looks after commands that `shell.exec` has started in the background. */
export type ShellBackgroundArgs =
  | { readonly op: 'list' }
  | { readonly op: 'tail'; readonly id: string; readonly outputBytes?: number }
  | { readonly op: 'kill'; readonly id: string };

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
  /** Streams that are no text: they are described instead of shown. */
  readonly binary?: readonly ('stdout' | 'stderr')[];
  /** Copies in the workspace that were asked for. */
  readonly saved?: readonly SavedOutput[];
  /** What was started, for a background command only. */
  readonly background?: BackgroundRecord;
}

/** A background command as its starter tells of it: one record, made where the command runs; nothing of it is put together elsewhere. */
export interface BackgroundRecord {
  readonly id: string;
  /** Pid and process group as the sandbox sees them. */
  readonly pid: number;
  readonly pgid: number;
  /** The file that is really written. */
  readonly log: string;
}

/** A stream of a command as it was written into the workspace. */
export interface SavedOutput {
  readonly stream: 'stdout' | 'stderr';
  readonly path: string;
  /** Bytes of the file, the marker of what was left out included. */
  readonly bytes: number;
  readonly truncated: boolean;
}

/** A command's outcome as it is recorded and given back: what the kernel knows of it beside what was told. */
export interface RecordedCommand extends CommandOutcome {
  /** While this command ran and one of its processes was killed, the engine has counted a process of this sandbox ended for want of memory. */
  readonly oom?: true;
  /** The engine has counted processes that this sandbox could not make, at its limit, while this command ran. */
  readonly pids?: true;
}
