import type { Owner } from './ids.ts';

/**
 * What a kernel knows of its own cost. Counters only grow and start at 0 with the kernel; `compare` reads the difference over a turn.
 * Memory of the kernel process itself is not here: whoever started the process reads it from outside.
 */
export interface MeasureSnapshot {
  /** Durable transactions that were committed, those of the scheduler included; reads are not counted. */
  readonly commits: number;
  /** Sums over all channels since the kernel started, closed ones included. */
  readonly membrane: {
    /** Requests that guests made; each is one round trip. The long-lived `control` request counts once, when it is opened. */
    readonly requests: number;
    /** Messages that the kernel sent on control streams. */
    readonly hostToSandbox: number;
    /** Body bytes, both directions. */
    readonly bytes: number;
    /** Accepted connections that are open now. */
    readonly connections: number;
  };
  /** Calls of the model gateway, and the wall time between request and reply as the kernel saw it (monotonic clock, no store time). */
  readonly model: { readonly calls: number; readonly wallMs: number };
  /** Live sandboxes, as their engine sees them from outside. */
  readonly sandboxes: readonly SandboxUsage[];
}

export interface SandboxUsage extends Owner {
  readonly generation: string;
  /** Memory that no process outside this sandbox shares. */
  readonly memoryBytes: number;
  readonly processes: number;
}

/** What `compare` and the bench need beside `KernelOperations`. Operator's side only: neither is reachable through membrane or API. */
export interface Measurable {
  measure(): Promise<MeasureSnapshot>;
  /**
   * Writes a file into the owner's workspace through the file helper inside a sandbox (`fs.write` operations of at most
   * `SAFETY.fileBytes`, the first one truncating, the rest appending); no host path below the workspace is opened. Starts a sandbox when
   * none runs and leaves what the owner's placement promises to leave.
   *
   * @param path relative to the workspace
   * @throws UsageError `not_found` (no such user); SandboxError `path_outside_workspace` `not_a_regular_file`
   */
  importFile(owner: Owner, path: string, source: AsyncIterable<Uint8Array>): Promise<{ readonly bytes: number }>;
}
