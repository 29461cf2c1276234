import type { SandboxErrorCode } from '../errors.ts';
import type { Owner } from '../ids.ts';
import type { EngineName } from '../run/types.ts';

/** Host paths and ids of one sandbox. All paths are absolute and made by the kernel, never by a sandbox. */
export interface SandboxSpec extends Owner {
  /** Random, never reused; names the socket directory. */
  readonly generation: string;
  /** Index of the owner's slice of the sub-id range. */
  readonly slice: number;
  /** Directory that holds `membrane.sock`; made by the engine (`prepareSocketDir`), mounted read-only. */
  readonly socketDir: string;
  /** Workspace and HOME-cache roots, side by side, never one below the other. */
  readonly workspaceDir: string;
  readonly homeDir: string;
  /** Handed to the guest on descriptor 3 and nowhere else. */
  readonly token: string;
}

export interface SandboxHandle {
  readonly generation: string;
  /** Resolves when no process of the sandbox is alive: the engine's evidence. `code` is set when the engine itself ended it for a limit. */
  readonly ended: Promise<{ readonly reason: string; readonly code?: SandboxErrorCode }>;
  /** Ends everything in it; resolves with `ended`. */
  stop(): Promise<void>;
  /** Processes of it that the system has ended for want of memory; undefined where nothing counts them. */
  oomKills?(): Promise<number | undefined>;
  /** Processes that could not be made in it, at its limit; undefined where nothing counts them. */
  refusedProcesses?(): Promise<number | undefined>;
  /** Unique memory and live processes of the sandbox, read from outside. */
  usage(): Promise<{ readonly memoryBytes: number; readonly processes: number }>;
}

/** Why a part of an image that is there does not count. */
export interface ImageFault {
  readonly part: string;
  readonly why: 'missing' | 'unlabelled' | 'stale' | 'damaged';
}

/** What the sandboxes of an engine are made of, and what became of it. */
export interface ImageStatus {
  readonly engine: EngineName;
  /** Of all that it is built from. */
  readonly digest: string;
  /** False: what was there is exactly that. */
  readonly built: boolean;
  /** What was wrong with the image that was there; empty when there was none. */
  readonly faults: readonly ImageFault[];
  /** Images that no sandbox uses any more and that are gone now. */
  readonly removed: number;
}

/**
 * What makes sandboxes.
 *
 * - N1 inside there is no network but loopback, no host home, no host socket but the membrane's, no environment but the explicit one.
 * - N2 every id inside comes from the owner's own slice; the kernel's uid is not in the map; nothing made inside is owned by it.
 * - N3 the guest starts with exactly the token on descriptor 3; a tool inherits descriptors 0, 1 and 2 only.
 * - N4 when the guest dies, every process of the sandbox ends, and `ended` resolves.
 * - N5 `sweep` ends what an earlier kernel of this state directory left.
 * - N6 no sandbox starts from an image of which any part is missing, unlabelled, of other sources or damaged.
 * - N7 what the guest puts below `/run/outwork-approved` tools read and run, and nothing that is not the executor changes, adds or removes it; it
 *   ends with the sandbox.
 */
export interface SandboxEngine {
  readonly name: EngineName;
  /** What isolates: `namespaces` for bubblewrap. */
  readonly wall: string;
  /** Makes the socket directory with the modes that let the slice's executor connect and nobody replace the socket. */
  prepareSocketDir(spec: Pick<SandboxSpec, 'socketDir' | 'slice'>): Promise<void>;
  /** Called after the socket listens: gives it to the slice's executor. */
  grantSocket(socketPath: string, slice: number): Promise<void>;
  start(spec: SandboxSpec): Promise<SandboxHandle>;
  sweep(): Promise<void>;
  /**
   * Verifies the image and builds it when it is not exactly what its sources make, or when `force` says so. Sandboxes that run keep theirs.
   *
   * @throws PrerequisiteError `image_unusable` `component_missing`; SandboxError `disk_full`
   */
  image?(options: { readonly force?: boolean | undefined }): Promise<ImageStatus>;
}
