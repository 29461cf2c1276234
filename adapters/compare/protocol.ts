import type { ErrorBody } from '../../core/errors.ts';
import type { MeasureSnapshot } from '../../core/measure.ts';
import type { EngineName, PlacementName } from '../../core/run/types.ts';
import type { TurnSample } from './turn.ts';

/** What the parent tells a kernel process at its start, as its one argument. */
export interface KernelProcessOptions {
  readonly stateDir: string;
  /** Configuration file whose policies, profile and capacities apply; without one the shown defaults. */
  readonly configFile: string | undefined;
  readonly engine: EngineName;
  readonly placement: PlacementName;
  /** Name of a shipped scenario, or an absolute path. */
  readonly scenario: string;
}

/** Requests of the parent. Users are `user-1` … of tenant `compare`. */
export type KernelRequest =
  | { readonly op: 'users'; readonly count: number }
  /** Brings a host file into the workspace of every user. */
  | { readonly op: 'import'; readonly users: number; readonly file: string; readonly path: string }
  /** One turn of each user at the same moment. */
  | { readonly op: 'round'; readonly users: number; readonly body: string; readonly limitMs: number }
  /** One turn of the first user, with samples of memory, processes and connections while it runs. */
  | { readonly op: 'watched'; readonly body: string; readonly limitMs: number }
  | { readonly op: 'usage' }
  /** Starts a turn of the first user and answers after the run's first completed call; `kill` then ends every process of its sandbox. */
  | { readonly op: 'begin'; readonly body: string; readonly kill: boolean; readonly limitMs: number }
  /** Waits for the run's next claim after `cursor`, the first call of that attempt, and the run's end. */
  | { readonly op: 'resume'; readonly run: string; readonly cursor: number; readonly limitMs: number };

export interface RoundReply {
  readonly samples: readonly TurnSample[];
  /** Counters over the round; memory and connections as they are after it. */
  readonly before: MeasureSnapshot;
  readonly after: MeasureSnapshot;
}

export interface UsageReply {
  readonly kernelBytes: number;
  readonly sandboxBytes: number;
  readonly processes: number;
  readonly connections: number;
}

export interface WatchedReply {
  readonly sample: TurnSample;
  readonly idle: UsageReply;
  readonly active: UsageReply;
}

export interface BegunReply {
  readonly run: string;
  /** End of the event log at that moment. */
  readonly cursor: number;
  /** Wall clock at the kill; of the answer when nothing was killed. */
  readonly atMs: number;
}

export interface ResumedReply {
  readonly sample: TurnSample;
  /** Wall clock of the first call which the next attempt completed; undefined when the run stopped without one. */
  readonly atMs: number | undefined;
}

export interface KernelReplies {
  users: null;
  import: null;
  round: RoundReply;
  watched: WatchedReply;
  usage: UsageReply;
  begin: BegunReply;
  resume: ResumedReply;
}

export type KernelAnswer =
  | { readonly id: number; readonly value: KernelReplies[keyof KernelReplies] }
  /** `area` is the name of the error's class, so that the parent can raise the same. */
  | { readonly id: number; readonly area: string; readonly error: ErrorBody['error'] };
