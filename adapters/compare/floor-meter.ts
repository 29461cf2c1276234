import type { EngineName } from '../../core/run/types.ts';
import { bareStartMs } from './bare-start.ts';
import { openCommitFloor, openRoundTripFloor } from './floor.ts';
import { quantile, rounded } from './quantile.ts';
import type { FloorParts, Unmeasured } from './results.ts';

const COMMITS_PER_SAMPLE = 20;
const TRIPS_PER_SAMPLE = 50;

/** Measures the bare operations between the turns, so that floor and turns meet the same machine. */
export class FloorMeter implements AsyncDisposable {
  readonly #engine: EngineName | undefined;
  readonly #commits: ReturnType<typeof openCommitFloor>;
  readonly #trips: Awaited<ReturnType<typeof openRoundTripFloor>>;
  readonly #seen = { commitMs: [] as number[], roundTripMs: [] as number[], bareStartMs: [] as number[] };

  private constructor(
    engine: EngineName | undefined,
    commits: ReturnType<typeof openCommitFloor>,
    trips: Awaited<ReturnType<typeof openRoundTripFloor>>,
  ) {
    this.#engine = engine;
    this.#commits = commits;
    this.#trips = trips;
  }

  /** `directory` must lie on the file system of the state directories. With several engines no bare start is measured: they differ. */
  static async open(directory: string, engines: readonly EngineName[]): Promise<FloorMeter> {
    return new FloorMeter(engines.length === 1 ? engines[0] : undefined, openCommitFloor(directory), await openRoundTripFloor(directory));
  }

  async sample(): Promise<void> {
    for (let count = 0; count < COMMITS_PER_SAMPLE; count += 1) this.#seen.commitMs.push(this.#commits.sampleMs());
    for (let count = 0; count < TRIPS_PER_SAMPLE; count += 1) this.#seen.roundTripMs.push(await this.#trips.sampleMs());
    const startMs = this.#engine === undefined ? undefined : await bareStartMs(this.#engine);
    if (startMs !== undefined) this.#seen.bareStartMs.push(startMs);
  }

  parts(): FloorParts {
    const p50 = (values: readonly number[]): number | null => {
      const value = quantile(values, 0.5);
      return value === undefined ? null : rounded(value);
    };
    return { commitMs: p50(this.#seen.commitMs), roundTripMs: p50(this.#seen.roundTripMs), bareStartMs: p50(this.#seen.bareStartMs) };
  }

  unmeasured(): readonly Unmeasured[] {
    if (this.#seen.bareStartMs.length > 0) return [];
    return [{ field: 'floor.bareStartMs', why: 'no bare start is known for this engine, or several engines were compared' }];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#commits.close();
    await this.#trips.close();
  }
}
