import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { PolicyError } from '../../core/errors.ts';
import type { Clock } from '../../core/seams/clock.ts';
import {
  ANSWER_BYTES,
  ANSWERED,
  ASKED,
  BEGUN,
  LOAD,
  OUTCOME,
  OUTCOMES,
  QUESTION_BYTES,
  type SharedCall,
  sharedCall,
  sharedCallBuffer,
  WANTED,
  type WorkerOutcome,
} from './shared-call.ts';
import type { WorkerLoad, WorkerReady, WorkerStart } from './wasm-worker.ts';

export interface PolicyWorkerOptions {
  readonly module: WebAssembly.Module;
  /** JSON of what rules read as `data`. */
  readonly dataJson: string;
  readonly entrypoint: string;
  /** Most memory of the module; 64 KiB steps. */
  readonly memoryBytes: number;
  /** JSON inputs that are evaluated, and forgotten, before it can be asked. */
  readonly warmUp: readonly string[];
  readonly clock: Clock;
}

export type Evaluation =
  | { readonly outcome: 'answer'; readonly text: string }
  /** After any of these the worker is unfit: terminate it. */
  | { readonly outcome: Exclude<WorkerOutcome, 'answer'> | 'timeout' };

/**
 * How much longer than its deadline a question may wait while the worker's thread gets no processor. On a busy machine a thread can wait
 * hundreds of milliseconds for its turn; a deny because of that would make policy depend on load.
 */
const STARVED_FACTOR = 200;
/** Falling asleep and being woken costs more than an answer takes (121 µs a decision against 35 µs), so the first moment is spent awake. */
const AWAKE_MS = 0.15;
/** A worker that is not ready by then never will be. */
const START_MS = 10_000;
const PAGE_BYTES = 64 * 1024;

/** One thread with one instance of the compiled policy and its data, asked synchronously. */
export class PolicyWorker {
  readonly #worker: Worker;
  readonly #call: SharedCall;
  readonly #thread: string;
  readonly #clock: Clock;
  #asked = 0;
  #onEnd: () => void = () => undefined;

  private constructor(worker: Worker, call: SharedCall, thread: string, clock: Clock) {
    this.#clock = clock;
    this.#worker = worker;
    this.#call = call;
    this.#thread = thread;
    worker.once('exit', () => this.#onEnd());
  }

  /** @throws PolicyError `policy_malformed` when the module cannot be instantiated with this data */
  static async start(options: PolicyWorkerOptions): Promise<PolicyWorker> {
    const shared = sharedCallBuffer();
    const { module, dataJson, entrypoint, memoryBytes, warmUp } = options;
    const memoryPages = Math.floor(memoryBytes / PAGE_BYTES);
    const workerData: WorkerStart = { module, dataJson, entrypoint, memoryPages, warmUp, shared };
    const worker = new Worker(workerUrl(), {
      workerData,
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    });
    worker.unref();
    worker.stdout.resume();
    worker.stderr.resume();
    const { thread } = await becomesReady(worker, options.clock);
    worker.on('error', () => undefined);
    return new PolicyWorker(worker, sharedCall(shared), thread, options.clock);
  }

  /**
   * Puts other rules and data into the same thread; it answers by them from then on. Must not be asked meanwhile.
   *
   * @throws PolicyError `policy_malformed`: the worker is unfit then
   */
  async load(load: WorkerLoad): Promise<void> {
    const { words } = this.#call;
    const ready = becomesReady(this.#worker, this.#clock);
    this.#worker.postMessage(load);
    this.#asked = (this.#asked + 1) | 0;
    Atomics.store(words, WANTED, LOAD);
    Atomics.store(words, ASKED, this.#asked);
    Atomics.notify(words, ASKED);
    const { fault } = await ready;
    Atomics.store(words, WANTED, 0);
    Atomics.store(words, ANSWERED, this.#asked);
    if (fault !== undefined) throw new PolicyError('policy_malformed', `The policy does not start: ${fault}`);
  }

  /** Calls `fn` once when the thread has ended, for whatever reason; it alone, for a worker goes from one snapshot to the next. */
  onEnd(fn: () => void): void {
    this.#onEnd = fn;
  }

  /**
   * Evaluates one input and blocks this thread until the answer, or until the worker has used `deadlineMs` of processor time, or until
   * 200 times that has passed.
   *
   * @param input - JSON of at most `SAFETY.policyInputBytes`
   */
  evaluate(input: string, deadlineMs: number): Evaluation {
    const { words, question, answer } = this.#call;
    this.#asked = (this.#asked + 1) | 0;
    Atomics.store(words, QUESTION_BYTES, question.write(input));
    Atomics.store(words, ASKED, this.#asked);
    Atomics.notify(words, ASKED);
    if (!this.#answered(deadlineMs)) return { outcome: 'timeout' };
    const outcome = OUTCOMES[Atomics.load(words, OUTCOME)] ?? 'trap';
    return outcome === 'answer' ? { outcome, text: answer.toString('utf8', 0, Atomics.load(words, ANSWER_BYTES)) } : { outcome };
  }

  /** Resolves when the thread has ended; an evaluation that runs is cut off. */
  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #answered(deadlineMs: number): boolean {
    const { words } = this.#call;
    const before = (this.#asked - 1) | 0;
    const ceiling = performance.now() + deadlineMs * STARVED_FACTOR;
    const awake = performance.now() + AWAKE_MS;
    while (performance.now() < awake) {
      if (Atomics.load(words, ANSWERED) === this.#asked) return true;
    }
    for (let waitMs = deadlineMs; ; ) {
      Atomics.wait(words, ANSWERED, before, waitMs);
      if (Atomics.load(words, ANSWERED) === this.#asked) return true;
      const left = Math.min(deadlineMs - this.#cpuMs(), ceiling - performance.now());
      if (left <= 0) return false;
      waitMs = Math.max(left, 0.5);
    }
  }

  /** Processor time the worker has spent on this question; without the kernel's accounting every wait counts as work. */
  #cpuMs(): number {
    const { words, cpu } = this.#call;
    if (Atomics.load(words, BEGUN) !== this.#asked) return this.#thread === '' ? Number.POSITIVE_INFINITY : 0;
    try {
      const [ranNs] = readFileSync(`/proc/self/task/${this.#thread}/schedstat`, 'latin1').split(' ');
      return (Number(ranNs) / 1000 - (cpu[0] ?? 0)) / 1000;
    } catch {
      return Number.POSITIVE_INFINITY;
    }
  }
}

/** The next message of a worker that starts or loads. @throws PolicyError `policy_malformed` when it ends, or takes too long; it is ended then */
async function becomesReady(worker: Worker, clock: Clock): Promise<WorkerReady> {
  const { promise, resolve, reject } = Promise.withResolvers<WorkerReady>();
  const fail = (cause: unknown) => reject(new PolicyError('policy_malformed', `The policy does not start: ${reasonOf(cause)}`, { cause }));
  worker.once('message', resolve);
  worker.once('error', fail);
  worker.once('exit', fail);
  const stopWaiting = clock.after(START_MS, () => {
    fail(`not ready after ${START_MS} ms`);
    void worker.terminate();
  });
  try {
    return await promise;
  } finally {
    stopWaiting();
    worker.off('message', resolve);
    worker.off('error', fail);
    worker.off('exit', fail);
  }
}

/** Beside this file, with this file's own extension: `.ts` in a checkout, `.js` once emitted. */
const workerUrl = (): URL => new URL(import.meta.url.endsWith('.ts') ? './wasm-worker.ts' : './wasm-worker.js', import.meta.url);

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
