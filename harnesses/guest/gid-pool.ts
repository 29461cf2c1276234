import { GuestError } from './errors.ts';
import { mayCarryGid } from './process-trees.ts';

/** The primary gids of invocations. One is given again only when no process carries it. */
export class GidPool {
  readonly #free: number[];
  readonly #held = new Set<number>();

  constructor(gids: readonly number[]) {
    this.#free = [...gids];
  }

  /** @throws GuestError `invocations_exhausted` */
  take(): number {
    if (this.#free.length === 0) this.#reclaim();
    const gid = this.#free.shift();
    if (gid === undefined) throw new GuestError('invocations_exhausted', 'Too many commands of this sandbox are alive');
    return gid;
  }

  /** `clear`: the caller has seen that no process carries it. Otherwise it stays held until one look finds none. */
  give(gid: number, clear: boolean): void {
    if (clear) this.#free.push(gid);
    else this.#held.add(gid);
  }

  #reclaim(): void {
    for (const gid of this.#held) {
      if (mayCarryGid(gid)) continue;
      this.#held.delete(gid);
      this.#free.push(gid);
    }
  }
}
