import { SandboxError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/seams/clock.ts';

const MiB = 1024 * 1024;
const LOOK_MS = 2000;
/** Users are measured at least so often while they have a sandbox, and whenever the file system has lost what one of them had left. */
const MEASURE_AGAIN_MS = 60_000;

/** The file system that the state directory lies on. */
export interface Space {
  readonly freeBytes: number;
  readonly usedBytes: number;
  /** Free inodes as a part of all; 1 where the file system has no such bound. */
  readonly freeInodes: number;
}

export interface DiskGuardDeps {
  readonly clock: Clock;
  readonly quotaBytes: number;
  readonly reserveBytes: number;
  space(): Promise<Space>;
}

/** What has to be watched of one owner; `root` names the owner. */
export interface Watched {
  readonly root: string;
  /** False of a sandbox in which no file can grow: it is measured, so that the next one may be normal again, and not ended. */
  readonly growing: boolean;
  /** Bytes in the owner's roots; undefined when they cannot be measured in time. */
  measure(): Promise<number | undefined>;
  /** Ends the owner's sandbox: everything in it that could write. */
  stop(reason: string): Promise<void>;
}

interface Measured {
  readonly bytes: number;
  readonly atMs: number;
  /** Used bytes of the whole file system at that time. */
  readonly used: number;
}

/** Least part of a file system's inodes that stays free. */
const INODE_RESERVE = 0.02;

/**
 * Holds every owner to a quota and keeps a reserve of the file system for the kernel itself. Two looks: the free space every two seconds,
 * which is one system call, and the walk through an owner's files only when the file system could hide that the owner is over the quota.
 */
export class DiskGuard {
  readonly #deps: DiskGuardDeps;
  readonly #watched = new Set<Watched>();
  readonly #measured = new Map<string, Measured>();
  #stopTimer: (() => void) | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: DiskGuardDeps) {
    this.#deps = deps;
  }

  /**
   * Whether a sandbox of this owner may start, and how: `clean-up` when the owner was last seen over the quota, so that files can be
   * deleted and none can grow.
   *
   * @throws SandboxError `disk_full` when the file system is below its reserve
   */
  async admit(root: string): Promise<'normal' | 'clean-up'> {
    const space = await this.#deps.space();
    if (this.#isShort(space)) {
      throw new SandboxError('disk_full', `the file system of the state directory has ${roomIn(space)} left`, {
        retryable: true,
        hint: 'free space there, or lower limits.diskReserveMiB',
      });
    }
    return (this.#measured.get(root)?.bytes ?? 0) > this.#deps.quotaBytes ? 'clean-up' : 'normal';
  }

  /** Watches until the returned function is called. The first look comes soon, not at once: a start is not to wait for it. */
  watch(what: Watched): () => void {
    this.#watched.add(what);
    this.#schedule();
    return () => {
      this.#watched.delete(what);
      if (this.#watched.size === 0) this.#stopTimer?.();
      if (this.#watched.size === 0) this.#stopTimer = undefined;
    };
  }

  /** One look at everything, as the timer takes it. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #schedule(): void {
    this.#stopTimer ??= this.#deps.clock.after(LOOK_MS, () => {
      this.#stopTimer = undefined;
      // A look that fails (the file system is gone) is no reason to end the kernel; the next one comes.
      void this.look()
        .catch(() => {})
        .finally(() => {
          if (this.#watched.size > 0) this.#schedule();
        });
    });
  }

  async #look(): Promise<void> {
    const space = await this.#deps.space();
    const short = this.#isShort(space);
    for (const one of [...this.#watched]) if (short || this.#isDue(one, space)) await this.#measure(one, space.usedBytes);
    if (!short || !this.#isShort(await this.#deps.space())) return;
    // Nobody who is left is over the quota, and still there is no room: the one who has most must go, one a look.
    const [largest] = [...this.#watched].sort((a, b) => this.#bytesOf(b) - this.#bytesOf(a));
    await largest?.stop(`disk_full: the file system has ${roomIn(space)} left, and this user has most on it`);
  }

  /** Not due: even if all that the file system has lost since were this owner's, there would be room under the quota. */
  #isDue({ root }: Watched, { usedBytes }: Space): boolean {
    const last = this.#measured.get(root);
    if (last === undefined || this.#deps.clock.now() - last.atMs >= MEASURE_AGAIN_MS) return true;
    return last.bytes + Math.max(0, usedBytes - last.used) > this.#deps.quotaBytes;
  }

  async #measure(one: Watched, used: number): Promise<void> {
    const atMs = this.#deps.clock.now();
    const bytes = (await one.measure()) ?? Number.POSITIVE_INFINITY;
    this.#measured.set(one.root, { bytes, atMs, used });
    if (one.growing && bytes > this.#deps.quotaBytes) {
      await one.stop(`disk_full: the user has ${inMiB(bytes)} in workspace and HOME; ${inMiB(this.#deps.quotaBytes)} are allowed`);
    }
  }

  #bytesOf({ root }: Watched): number {
    return this.#measured.get(root)?.bytes ?? 0;
  }

  #isShort(space: Space): boolean {
    return isShort(space, this.#deps.reserveBytes);
  }
}

/** Whether a file system is below what it has to keep free. */
export const isShort = ({ freeBytes, freeInodes }: Space, reserveBytes: number): boolean =>
  freeBytes < reserveBytes || freeInodes < INODE_RESERVE;

const inMiB = (bytes: number): string => (Number.isFinite(bytes) ? `${Math.ceil(bytes / MiB)} MiB` : 'more than can be measured');

/** Room as a person is told of it. */
export const roomIn = ({ freeBytes, freeInodes }: Space): string =>
  `${Math.floor(freeBytes / MiB)} MiB and ${Math.floor(freeInodes * 100)} % of its inodes`;
