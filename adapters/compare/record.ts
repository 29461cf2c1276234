import type { EngineName, PlacementName } from '../../core/run/types.ts';
import type { RoundReply, WatchedReply } from './protocol.ts';
import type { TurnSample } from './turn.ts';

/** Everything that was seen of one placement, before any figure is made of it. */
export interface PlacementRecord {
  readonly placement: PlacementName;
  readonly engine: EngineName;
  /** The untimed first turn, with a sandbox that did not exist. */
  readonly first: TurnSample;
  /** In the order in which they ran. */
  readonly rounds: readonly RoundReply[];
  readonly watched: WatchedReply;
  readonly kill: KillRecord;
  readonly diskBytes: number;
}

export type KillRecord =
  | { readonly kind: 'resumed'; readonly ms: number; readonly sample: TurnSample }
  /** Not tried, or the run did not go on by itself. */
  | { readonly kind: 'none'; readonly why: string; readonly sample: TurnSample | undefined };
