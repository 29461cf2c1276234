import { StoreError } from '../errors.ts';
import { DEADLINE } from '../ports/executor.ts';
import { openCredentialGates } from './credential-gates.ts';
import { executeRun, type RunDeps } from './execute-run.ts';
import type { LiveRun } from './live-runs.ts';
import type { ClaimedRun } from './types.ts';

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

/** An attempt that this kernel carries out. */
interface Attempt {
  readonly run: ClaimedRun;
  /** Aborted when the lease is lost, or the run's deadline passes. */
  readonly lease: AbortController;
  /** When the lease was given, or extended last. */
  beatenAtMs: number;
  live: LiveRun | undefined;
}

/**
 * Claims runs while there is room, heartbeats what it holds, and sweeps: expired leases and approvals, gates whose credential has come.
 * Wake-ups are hints; claims by polling are what counts.
 */
export class Scheduler implements AsyncDisposable {
  readonly #deps: SchedulerDeps;
  readonly #closing = new AbortController();
  /** One that has lost its lease stays until it has ended: only then may another attempt of its run begin here. */
  readonly #attempts = new Map<Attempt, Promise<void>>();
  #gates: Promise<void> | undefined;
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
    await Promise.all(this.#attempts.values());
    await this.#gates;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let sweptAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      this.#woken = false;
      try {
        const nowMs = this.#deps.clock.now();
        if (nowMs - sweptAtMs >= this.#deps.config.capacity.heartbeatMs) {
          sweptAtMs = nowMs;
          await this.#sweep(nowMs);
        }
        if (await this.#claimOne()) continue;
      } catch (error) {
        this.#deps.onError(error, undefined);
      }
      await this.#idle();
    }
  }

  async #sweep(nowMs: number): Promise<void> {
    const { alone, holder, config, store } = this.#deps;
    const { leaseMs, reclaims } = config.capacity;
    // The disk was full, or this process was stopped: what is held here is held on to before any lease is judged.
    for (const attempt of this.#attempts.keys()) {
      if (attempt.beatenAtMs + leaseMs <= nowMs && !attempt.lease.signal.aborted) await this.#beat(attempt);
    }
    await store.runs.expire(nowMs, reclaims, alone ? holder : undefined);
    await store.approvals.expire(nowMs);
    // Beside the loop: a broker that is slow delays nothing but what waits for it.
    this.#gates ??= this.#openGates(nowMs).finally(() => {
      this.#gates = undefined;
    });
  }

  async #openGates(nowMs: number): Promise<void> {
    const { signal } = this.#closing;
    try {
      if ((await openCredentialGates(this.#deps, nowMs, signal)) > 0) this.wake();
    } catch (error) {
      this.#deps.onError(error, undefined);
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
    if (this.#attempts.size >= config.capacity.concurrentRuns) return false;
    const nowMs = clock.now();
    const run = await store.runs.claim({
      holder,
      nowMs,
      leaseMs: config.capacity.leaseMs,
      deadlineMs: nowMs + config.capacity.runDeadlineMs,
      perUser: config.runsPerUser,
    });
    if (run === undefined) return false;
    const before = [...this.#attempts].find(([attempt]) => attempt.run.id === run.id);
    before?.[0].lease.abort();
    const attempt: Attempt = { run, lease: new AbortController(), beatenAtMs: nowMs, live: undefined };
    const work = this.#hold(attempt, before?.[1]).finally(() => {
      this.#attempts.delete(attempt);
      this.#deps.onEnded(run.id);
      this.wake();
    });
    this.#attempts.set(attempt, work);
    return true;
  }

  /** Carries one attempt out under its lease, once the one before it, which lost its own, has ended here. */
  async #hold(attempt: Attempt, before: Promise<void> | undefined): Promise<void> {
    const { run, lease } = attempt;
    let stopBeat = () => {};
    let over = false;
    const { clock, config } = this.#deps;
    const beat = () => {
      if (over) return;
      stopBeat = clock.after(config.capacity.heartbeatMs, () => {
        void this.#beat(attempt).then(
          () => !lease.signal.aborted && beat(),
          (error) => {
            this.#deps.onError(error, run.id);
            beat();
          },
        );
      });
    };
    beat();
    const stopDeadline = clock.after(Math.max(0, run.deadlineMs - clock.now()), () => lease.abort(DEADLINE));
    try {
      await before;
      const signal = AbortSignal.any([lease.signal, this.#closing.signal]);
      await executeRun(this.#deps, run, {
        signal,
        closing: this.#closing.signal,
        onLive: (seated) => {
          attempt.live = seated;
          if (seated.cancelRequested) seated.cancel();
        },
      });
    } catch (error) {
      this.#deps.onError(error, run.id);
    } finally {
      over = true;
      stopBeat();
      stopDeadline();
    }
  }

  /** Extends the lease. One that is lost is aborted: the attempt must stop at once. @throws StoreError `disk_full`: nobody can take the run either */
  async #beat(attempt: Attempt): Promise<void> {
    const { store, clock, config } = this.#deps;
    const { run, lease, live } = attempt;
    const nowMs = clock.now();
    try {
      const { cancelRequested } = await store.runs.heartbeat({ run: run.id, fence: run.fence }, nowMs, config.capacity.leaseMs);
      attempt.beatenAtMs = nowMs;
      if (cancelRequested && live !== undefined && !live.cancelRequested) {
        live.cancelRequested = true;
        live.cancel();
      }
    } catch (error) {
      if (!(error instanceof StoreError) || error.retryable) throw error;
      lease.abort();
    }
  }
}
