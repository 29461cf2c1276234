import { performance } from 'node:perf_hooks';
import { type OutworkError, PolicyError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import { SAFETY } from '../../core/limits.ts';
import type { Decision, PolicyEngine, PolicyInput, PolicyStatus } from '../../core/policy/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { inputFault } from './bounds.ts';
import { type Bundle, bundleSignature, loadBundle } from './bundle.ts';
import { hostFunctions } from './host-functions.ts';
import { toRegoInput } from './marshal.ts';
import { type Evaluation, PolicyWorker } from './policy-worker.ts';
import { ENTRYPOINT } from './sources.ts';
import { denial, readVerdict, type Verdict } from './verdict.ts';
import { warmUpInputs } from './warm-up.ts';

export interface PolicyEngineOptions {
  /** Bundle root: holds `outwork/`, `data/`, `schemas/` and `dist/`. */
  readonly dir: string;
  readonly clock: Clock;
  /** Milliseconds between two looks at the files. */
  readonly pollMs: number;
  /** Receives `policy.loaded` and `policy.reload_failed`. */
  readonly onEvent: (event: NewEvent) => void;
  /** Default and most: `SAFETY.policyDeadlineMs`. */
  readonly deadlineMs?: number;
  /** Default and most: `SAFETY.policyMemoryBytes`. */
  readonly memoryBytes?: number;
}

export interface ReloadingPolicyEngine extends PolicyEngine {
  /** Looks at the files now instead of at the next poll; resolves when what is on disk runs, or its fault is in `status()`. */
  reload(): Promise<void>;
}

/**
 * The policy engine: a compiled bundle in a worker thread, asked synchronously under a deadline, with a second worker that stands by.
 *
 * @throws PolicyError `policy_stale` `policy_malformed` when the first load fails: without policy there is no kernel
 */
export async function createPolicyEngine(options: PolicyEngineOptions): Promise<ReloadingPolicyEngine> {
  const engine = new WasmPolicyEngine(options);
  await engine.start();
  return engine;
}

interface Snapshot {
  readonly bundle: Bundle;
  readonly module: WebAssembly.Module;
}

class WasmPolicyEngine implements ReloadingPolicyEngine {
  readonly #options: PolicyEngineOptions;
  readonly #deadlineMs: number;
  readonly #memoryBytes: number;
  #snapshot: Snapshot | undefined;
  #current: PolicyWorker | undefined;
  #spare: PolicyWorker | undefined;
  #loadedAtMs = 0;
  #fault: string | undefined;
  /** What the files looked like at the last load, good or bad. */
  #signature = '';
  /** What they looked like at the last poll, when that was new. */
  #candidate = '';
  #reloading: Promise<void> = Promise.resolve();
  #stopPolling: () => void = () => undefined;
  #closed = false;

  constructor(options: PolicyEngineOptions) {
    this.#options = options;
    this.#deadlineMs = Math.min(options.deadlineMs ?? SAFETY.policyDeadlineMs, SAFETY.policyDeadlineMs);
    this.#memoryBytes = Math.min(options.memoryBytes ?? SAFETY.policyMemoryBytes, SAFETY.policyMemoryBytes);
  }

  async start(): Promise<void> {
    this.#signature = await bundleSignature(this.#options.dir).catch(() => '');
    await this.#adopt(await loadBundle(this.#options.dir));
    this.#poll();
  }

  decide(input: PolicyInput): Decision {
    const begun = performance.now();
    const digests = this.#snapshot?.bundle.digests ?? { rules: '', data: '' };
    const verdict = this.#verdict(input);
    return { ...verdict, digests, durationUs: Math.round((performance.now() - begun) * 1000) };
  }

  status(): PolicyStatus {
    return {
      ready: this.#current !== undefined,
      digests: this.#snapshot?.bundle.digests ?? { rules: '', data: '' },
      loadedAtMs: this.#loadedAtMs,
      reloadFault: this.#fault,
    };
  }

  reload(): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#load());
    return this.#reloading;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopPolling();
    await this.#reloading;
    const workers = [this.#current, this.#spare];
    this.#current = undefined;
    this.#spare = undefined;
    await Promise.all(workers.map((worker) => worker?.terminate()));
  }

  #verdict(input: PolicyInput): Verdict {
    try {
      const fault = inputFault(input);
      if (fault !== undefined) return denial('input_out_of_bounds', `Policy was not asked: ${fault}.`);
      const text = JSON.stringify(toRegoInput(input));
      if (Buffer.byteLength(text) > SAFETY.policyInputBytes) {
        return denial('input_out_of_bounds', `Policy was not asked: the input is larger than ${SAFETY.policyInputBytes} bytes.`);
      }
      const worker = this.#current;
      if (worker === undefined) return denial('policy_not_ready', 'Policy is being loaded; ask again.');
      const evaluation = worker.evaluate(text, this.#deadlineMs);
      if (evaluation.outcome === 'answer') return readVerdict(evaluation.text);
      this.#discard(worker);
      return denialOf(evaluation, this.#deadlineMs);
    } catch (error) {
      return denial('policy_malformed', `Policy could not be asked: ${(error as Error).message}`);
    }
  }

  /** Takes an unfit worker out; the one that stands by serves from now on, if there is one. */
  #discard(worker: PolicyWorker): void {
    void worker.terminate();
    if (this.#spare === worker) this.#spare = undefined;
    else if (this.#current === worker) {
      this.#current = this.#spare;
      this.#spare = undefined;
    } else return;
    void this.#refill();
  }

  /** Starts one worker of the present snapshot for the place that is empty. */
  async #refill(): Promise<void> {
    const snapshot = this.#snapshot;
    if (snapshot === undefined || this.#closed) return;
    try {
      const worker = await this.#startWorker(snapshot);
      if (this.#closed || this.#snapshot !== snapshot || (this.#current !== undefined && this.#spare !== undefined))
        await worker.terminate();
      else if (this.#current === undefined) this.#current = worker;
      else this.#spare = worker;
    } catch {
      // It did start before: this machine lacks something just now.
      this.#options.clock.after(this.#options.pollMs, () => void this.#refill());
    }
  }

  async #startWorker({ bundle, module }: Snapshot): Promise<PolicyWorker> {
    const worker = await PolicyWorker.start({
      module,
      dataJson: bundle.dataJson,
      entrypoint: ENTRYPOINT,
      memoryBytes: this.#memoryBytes,
      warmUp: warmUpInputs(),
      clock: this.#options.clock,
    });
    worker.onEnd(() => this.#discard(worker));
    return worker;
  }

  /** Makes a bundle the one that decides, at one moment, after two workers have loaded it. */
  async #adopt(bundle: Bundle): Promise<void> {
    const snapshot = { bundle, module: await compile(bundle.wasm) };
    const started = await Promise.allSettled([this.#startWorker(snapshot), this.#startWorker(snapshot)]);
    const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = started.find((one) => one.status === 'rejected');
    if (refused !== undefined || this.#closed) {
      await Promise.all(workers.map((worker) => worker.terminate()));
      if (refused !== undefined) throw refused.reason;
      return;
    }
    const old = [this.#current, this.#spare];
    this.#snapshot = snapshot;
    [this.#current, this.#spare] = workers;
    this.#loadedAtMs = this.#options.clock.now();
    for (const worker of old) void worker?.terminate();
    this.#options.onEvent({ type: 'policy.loaded', data: { ...bundle.digests } });
  }

  async #load(): Promise<void> {
    if (this.#closed) return;
    try {
      this.#signature = await bundleSignature(this.#options.dir);
      const bundle = await loadBundle(this.#options.dir);
      const running = this.#snapshot?.bundle.digests;
      if (bundle.digests.rules !== running?.rules || bundle.digests.data !== running.data) await this.#adopt(bundle);
      this.#fault = undefined;
    } catch (error) {
      const { code, message } = error as OutworkError;
      this.#fault = message;
      this.#options.onEvent({ type: 'policy.reload_failed', data: { code: code ?? 'policy_malformed', message } });
    }
  }

  #poll(): void {
    if (this.#closed) return;
    this.#stopPolling = this.#options.clock.after(this.#options.pollMs, () => {
      void this.#look().finally(() => this.#poll());
    });
  }

  /** Loads what has changed since the last load once two looks in a row saw the same: a file that is being written is not read. */
  async #look(): Promise<void> {
    const seen = await bundleSignature(this.#options.dir).catch(() => 'unreadable');
    if (seen === this.#signature) return;
    const settled = seen === this.#candidate;
    this.#candidate = seen;
    if (settled) await this.reload();
  }
}

async function compile(wasm: Uint8Array): Promise<WebAssembly.Module> {
  try {
    const module = await WebAssembly.compile(Uint8Array.from(wasm));
    const wanted = hostFunctions(module);
    if (wanted.length === 0) return module;
    throw new PolicyError('policy_malformed', `The compiled policy needs functions of its host: ${wanted.join(', ')}`);
  } catch (error) {
    if (error instanceof PolicyError) throw error;
    throw new PolicyError('policy_malformed', `The compiled policy is no such thing: ${(error as Error).message}`, { cause: error });
  }
}

function denialOf(evaluation: Exclude<Evaluation, { outcome: 'answer' }>, deadlineMs: number): Verdict {
  switch (evaluation.outcome) {
    case 'timeout':
      return denial('policy_timeout', `Policy took longer than ${deadlineMs} ms.`);
    case 'memory':
      return denial('policy_memory', 'Policy needed more memory than it may have.');
    case 'answer_too_large':
      return denial('policy_malformed', 'The decision document is too large.');
    case 'trap':
      return denial('policy_trap', 'Policy stopped with an error.');
  }
}
