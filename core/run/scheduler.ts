import { StoreError } from '../errors.ts';
import { openCredentialGates } from './credential-gates.ts';
import { executeRun, type RunDeps } from './execute-run.ts';
import type { LiveRun } from './live-runs.ts';
import type { ClaimedRun } from './types.ts';
import { isStoreFull } from './until-stored.ts';

export interface SchedulerDeps extends RunDeps {
  /** Unique per kernel process: a restarted kernel is another holder. */
  readonly holder: string;
  /** This kernel alone owns the state (its directory is locked): leases of other holders are dead ones. */
  readonly alone: boolean;
  /** Where errors go that no run can carry. */
  readonly onError: (error: unknown, run: string | undefined) => void;
  /** A run ended: its reply may want delivery, its thread may have a next message. */
  readonly onEnded: (run: string) => void;
}

/**
 * Claims runs while there is room, heartbeats what it holds, and sweeps: expired leases and approvals, gates whose credential has come. Wake-ups are hints; claims by polling are what counts.
 */
export class Scheduler implements AsyncDisposable {
  readonly #deps: SchedulerDeps;
  readonly #closing = new AbortController();
  readonly #active = new Map<string, Promise<void>>();
  /** Runs held here whose lease a full disk would not let be extended. */
  readonly #overdue = new Map<string, ClaimedRun>();
  #wake: (() => void) | undefined;
  #woken = false;
  #loop: Promise<void> | undefined;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** There may be something to claim. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.wake();
    await this.#loop;
    await Promise.all(this.#active.values());
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let sweptAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      this.#woken = false;
      try {
        if (this.#deps.clock.now() - sweptAtMs >= this.#deps.config.capacity.heartbeatMs) {
          sweptAtMs = this.#deps.clock.now();
          const { alone, holder, config, store } = this.#deps;
          // There is room again: what is held here is held on to before any lease is judged.
          for (const run of this.#overdue.values()) await this.#beat(run, undefined);
          await store.runs.expire(sweptAtMs, config.capacity.reclaims, alone ? holder : undefined);
          await store.approvals.expire(sweptAtMs);
          await openCredentialGates(this.#deps, sweptAtMs);
        }
        if (await this.#claimOne()) continue;
      } catch (error) {
        this.#deps.onError(error, undefined);
      }
      await this.#idle();
    }
  }

  /** Until a wake-up, or the next poll. */
  async #idle(): Promise<void> {
    if (this.#woken || this.#closing.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.clock.after(Math.min(1000, this.#deps.config.capacity.heartbeatMs), resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }

  async #claimOne(): Promise<boolean> {
    const { store, clock, config, holder } = this.#deps;
    if (this.#active.size >= config.capacity.concurrentRuns) return false;
    const nowMs = clock.now();
    const run = await store.runs.claim({
      holder,
      nowMs,
      leaseMs: config.capacity.leaseMs,
      deadlineMs: nowMs + config.capacity.runDeadlineMs,
      perUser: config.runsPerUser,
    });
    if (run === undefined) return false;
    const work = this.#hold(run).finally(() => {
      this.#active.delete(run.id);
      this.#deps.onEnded(run.id);
      this.wake();
    });
    this.#active.set(run.id, work);
    return true;
  }

  /** Runs one attempt under its lease. */
  async #hold(run: ClaimedRun): Promise<void> {
    const lease = new AbortController();
    let live: LiveRun | undefined;
    let stopBeat = () => {};
    let over = false;
    const { clock, config } = this.#deps;
    const beat = () => {
      if (over) return;
      stopBeat = clock.after(config.capacity.heartbeatMs, () => {
        void this.#beat(run, live).then(
          (held) => (held ? beat() : lease.abort()),
          (error) => {
            this.#deps.onError(error, run.id);
            beat();
          },
        );
      });
    };
    beat();
    const stopDeadline = clock.after(Math.max(0, run.deadlineMs - clock.now()), () => lease.abort());
    try {
      const signal = AbortSignal.any([lease.signal, this.#closing.signal]);
      await executeRun(this.#deps, run, {
        signal,
        closing: this.#closing.signal,
        onLive: (seated) => {
          live = seated;
          if (seated.cancelRequested) seated.cancel();
        },
      });
    } catch (error) {
      this.#deps.onError(error, run.id);
    } finally {
      over = true;
      this.#overdue.delete(run.id);
      stopBeat();
      stopDeadline();
    }
  }

  /** @returns false when the lease is lost: the attempt must stop at once. @throws StoreError `disk_full`: nobody can take the run either */
  async #beat(run: ClaimedRun, live: LiveRun | undefined): Promise<boolean> {
    const { store, clock, config } = this.#deps;
    try {
      const { cancelRequested } = await store.runs.heartbeat({ run: run.id, fence: run.fence }, clock.now(), config.capacity.leaseMs);
      this.#overdue.delete(run.id);
      if (cancelRequested && live !== undefined && !live.cancelRequested) {
        live.cancelRequested = true;
        live.cancel();
      }
      return true;
    } catch (error) {
      if (isStoreFull(error)) {
        this.#overdue.set(run.id, run);
        throw error;
      }
      this.#overdue.delete(run.id);
      if (error instanceof StoreError) return false;
      throw error;
    }
  }
}
