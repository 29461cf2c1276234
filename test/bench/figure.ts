/** One measured figure beside its target. Units are part of `id` (`…Us`, `…Ms`, `…MiB`). */
export interface Figure {
  readonly id: string;
  /** The target as a person reads it, e.g. `≤ 50 µs`. */
  readonly target: string;
  readonly measured: number;
  /** What the bare machine needs for the same thing, measured in the same run. */
  readonly baseline: number | null;
  /** `measured / baseline`. */
  readonly ratio: number | null;
  readonly met: boolean;
}
