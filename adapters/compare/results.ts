import type { CapabilityName, Enforcer } from '../../core/capability/types.ts';
import type { EngineName, PlacementName } from '../../core/run/types.ts';

/**
 * What `results.json` holds; `results.schema.json` says the same to a machine. A null figure is legal only with an entry in `unmeasured`.
 * Milliseconds are of monotonic clocks.
 */
export interface CompareResults {
  readonly schema: 1;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly machine: Machine;
  readonly engines: readonly EngineFacts[];
  readonly workload: WorkloadFacts;
  /** Medians of the bare operations that `floorMs` is made of, measured between the turns. */
  readonly floor: FloorParts;
  readonly unmeasured: readonly Unmeasured[];
  readonly placements: readonly PlacementResult[];
}

export interface Machine {
  readonly os: string;
  readonly kernel: string;
  readonly arch: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryMiB: number;
  readonly node: string;
  /** Type of the file system that held the state directories: a commit on `tmpfs` costs nothing. */
  readonly stateFilesystem: string;
  /** One-minute load average before the first turn: what else ran here. */
  readonly loadBefore: number;
}

export interface EngineFacts {
  readonly name: EngineName;
  readonly wall: string;
  readonly version: string;
}

export interface WorkloadFacts {
  readonly name: string;
  /** Timed turns of one user in each placement. */
  readonly turns: number;
  /** Users whose turns ran at the same moment. */
  readonly concurrency: number;
  readonly quick: boolean;
  /** The repository that was cloned into each workspace; null for a workload that needs none. */
  readonly repository: RepositoryFacts | null;
}

export interface RepositoryFacts {
  readonly name: string;
  readonly commit: string;
  readonly files: number;
  readonly bundleMiB: number;
  /** `tip`: the whole history was over the bound, only the newest commit's files were taken. */
  readonly history: 'full' | 'tip';
}

export interface FloorParts {
  readonly commitMs: number | null;
  readonly roundTripMs: number | null;
  readonly bareStartMs: number | null;
}

export interface Unmeasured {
  /** `<figure>` for every placement, or `<placement>/<engine>.<figure>`. */
  readonly field: string;
  readonly why: string;
}

export interface TurnPoint {
  /** From 1, in the order in which they ran. */
  readonly turn: number;
  readonly ms: number;
  readonly cold: boolean;
  readonly completed: boolean;
}

export interface PlacementResult {
  readonly placement: PlacementName;
  readonly engine: EngineName;
  readonly turns: number;
  readonly failed: number;
  /** Message posted to run ended, of the turns that completed (the kernel's own record of both, whole milliseconds each). */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
  /** From claim to a seat that can take the run, of the attempts that had to make a sandbox (event times, whole milliseconds). */
  readonly coldStartMs: { readonly p50: number } | null;
  /** Turn time less model time and the commands' own wall time. */
  readonly overheadMs: { readonly p50: number; readonly p95: number } | null;
  /** Commits × commit + round trips × round trip + a bare start where cold; a control message counts as half a round trip. */
  readonly floorMs: { readonly p50: number } | null;
  /** A command as the loop sees it, permit and records included (ledger times, whole milliseconds). */
  readonly shellMs: { readonly p50: number } | null;
  /** Unique memory of the kernel process plus that of the first user's sandbox. */
  readonly memoryMiB: IdleActive | null;
  /** The same two parts of `memoryMiB` apart, for the plot. */
  readonly memoryPartsMiB: { readonly kernel: IdleActive; readonly sandbox: IdleActive } | null;
  /** Kernel process plus the first user's sandbox. */
  readonly processes: IdleActive | null;
  /** Open connections on membrane sockets. */
  readonly connections: IdleActive | null;
  readonly calls: {
    readonly membranePerTurn: number;
    readonly hostToSandboxPerTurn: number;
    readonly bytesPerTurn: number;
    readonly commitsPerTurn: number;
  } | null;
  /** From SIGKILL of the executor to the first call the next attempt completed. */
  readonly killToResumeMs: { readonly p50: number } | null;
  /** Replies beyond the first of a run, the killed turn's run included. */
  readonly duplicates: number | null;
  /** Completed runs without a reply. */
  readonly lost: number | null;
  readonly protocol: { readonly operations: number } | null;
  /** Source files and lines that only this placement needs. */
  readonly code: { readonly files: number; readonly lines: number } | null;
  readonly deployment: Deployment | null;
  readonly newCli: { readonly files: number; readonly lines: number } | null;
  readonly enforcement: Readonly<Record<CapabilityName, Enforcer>>;
  readonly attacks: { readonly total: number; readonly stopped: number } | null;
  readonly samples: readonly TurnPoint[];
}

export interface IdleActive {
  readonly idle: number;
  /** Highest of the samples taken during one extra, untimed turn. */
  readonly active: number;
}

export interface Deployment {
  readonly daemons: number;
  readonly images: number;
  /** What the kernel keeps on disk beside workspaces and homes, at the end. */
  readonly diskMiB: number;
  readonly privileges: readonly string[];
}

/** Figures of a placement that may be null. */
export const NULLABLE_FIGURES = [
  'latencyMs',
  'coldStartMs',
  'overheadMs',
  'floorMs',
  'shellMs',
  'memoryMiB',
  'memoryPartsMiB',
  'processes',
  'connections',
  'calls',
  'killToResumeMs',
  'duplicates',
  'lost',
  'protocol',
  'code',
  'deployment',
  'newCli',
  'attacks',
] as const satisfies readonly (keyof PlacementResult)[];

export const placementLabel = (result: Pick<PlacementResult, 'placement' | 'engine'>): string => `${result.placement}/${result.engine}`;
