import type { BackgroundRecord, CommandOutcome } from '../capability/types.ts';
import type { Owner } from '../ids.ts';
import type { ClaimedRun, EngineName, PlacementName } from '../run/types.ts';
import type { Executor } from './executor.ts';

/**
 * Where executor and tools live. One adapter per placement, all over the same sandbox engine.
 *
 * - P1 `seat` adopts, starts or creates what the run needs, and answers only when the executor can take the run.
 * - P2 a seat belongs to the run's own actor: the workspace derives from (tenant, actor) by one function.
 * - P3 `release` leaves exactly what the placement promises: `persistent-per-user` and `host-loop-shell` the sandbox, `disposable-per-run` only the workspace.
 * - P4 `recycle` ends the owner's sandbox with everything in it; when it resolves no process of it is alive (the engine's proof, not the guest's).
 */
export interface Placement {
  readonly name: PlacementName;
  readonly engine: EngineName;
  readonly wall: string;
  seat(run: ClaimedRun, harness: string): Promise<Seat>;
  /** Ends what an earlier attempt of this run may have left. Called before the ledger is judged. */
  recycle(run: { readonly id: string } & Owner): Promise<void>;
}

export interface Seat {
  readonly engine: EngineName;
  readonly wall: string;
  /** Generation of the sandbox that serves this run. */
  readonly sandbox: string;
  /** True when a sandbox had to be made for it. */
  readonly cold: boolean;
  readonly harness: string;
  readonly executor: Executor;
  /** Runs a permitted command or file operation in the sandbox on the kernel's behalf (`host-loop-shell`, and `fs.*`). */
  readonly tools: SandboxTools;
  /** `healthy` is false when the executor was lost: what remains is thrown away. */
  release(healthy: boolean): Promise<void>;
}

export interface SandboxTools {
  /** @param onProgress - sees what a running command has printed so far, now and then */
  exec(command: ToolCommand, signal: AbortSignal, onProgress?: (progress: CommandProgress) => void): Promise<CommandOutcome>;
  file(operation: FileOperation, signal: AbortSignal): Promise<FileResult>;
  background(operation: BackgroundOperation, signal: AbortSignal): Promise<BackgroundResult>;
  /** Processes of the sandbox that the system has ended for want of memory since it was made; absent when the engine cannot count them. */
  oomKills?(): Promise<number | undefined>;
  /** Processes that could not be made because the sandbox has as many as it may; absent when the engine cannot count them. */
  refusedProcesses?(): Promise<number | undefined>;
}

/** What a running command has printed: sizes, and the end of it as text. */
export interface CommandProgress {
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly tail: string;
}

export type BackgroundOperation =
  | { readonly op: 'list' }
  /** The newest `maxBytes` of what the command has printed. */
  | { readonly op: 'tail'; readonly id: string; readonly maxBytes: number }
  /** Ends the command with everything it has started. */
  | { readonly op: 'kill'; readonly id: string };

/** A background command and how it stands. */
export interface BackgroundCommand extends BackgroundRecord {
  readonly running: boolean;
  /** How it ended; both null while it runs. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Bytes it has printed. */
  readonly bytes: number;
  readonly ageMs: number;
  /** TCP ports on which it listens, ascending; told by `list`, absent when there is none to be seen. */
  readonly ports?: readonly number[];
}

export type BackgroundResult =
  | { readonly op: 'list'; readonly commands: readonly BackgroundCommand[] }
  | { readonly op: 'tail'; readonly command: BackgroundCommand; readonly text: string }
  | { readonly op: 'kill'; readonly command: BackgroundCommand };

export interface ToolCommand {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string };
  readonly stdin?: string;
  readonly timeoutMs: number;
  readonly outputBytes: number;
  readonly save?: { readonly path: string; readonly bytes?: number };
  readonly background?: boolean;
  readonly lifetimeMs?: number;
}

export type FileOperation =
  | { readonly op: 'read'; readonly path: string; readonly maxBytes: number }
  /** `body` is base64 when `encoding` says so, else UTF-8 text. */
  | { readonly op: 'write'; readonly path: string; readonly body: string; readonly encoding: 'utf8' | 'base64'; readonly append?: boolean }
  | { readonly op: 'list'; readonly path: string; readonly maxEntries: number }
  /** Puts bytes (base64) where tools may read and run them and not change them: `APPROVED_DIR/<sha256>/<name>`. Answered as a write. */
  | { readonly op: 'place'; readonly sha256: string; readonly name: string; readonly body: string };

export type FileResult =
  | { readonly op: 'read'; readonly body: string; readonly encoding: 'utf8' | 'base64'; readonly size: number; readonly truncated: boolean }
  | { readonly op: 'write'; readonly size: number }
  | {
      readonly op: 'list';
      readonly entries: readonly { readonly name: string; readonly kind: 'file' | 'directory' | 'link' | 'other'; readonly size: number }[];
      readonly truncated: boolean;
    };
