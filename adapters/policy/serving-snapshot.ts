import { PolicyError } from '../../core/errors.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { Bundle } from './bundle.ts';
import { hostFunctions } from './host-functions.ts';
import { type Evaluation, PolicyWorker } from './policy-worker.ts';
import { ENTRYPOINT } from './sources.ts';
import { denial, readVerdict, type Verdict } from './verdict.ts';
import { warmUpInputs } from './warm-up.ts';

export interface ServingOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly memoryBytes: number;
  /** Milliseconds until a replacement that did not start is tried again. */
  readonly retryMs: number;
}

/** One bundle that can be asked: its compiled module, a worker that answers and one that stands by. */
export class ServingSnapshot {
  readonly bundle: Bundle;
  readonly module: WebAssembly.Module;
  readonly #options: ServingOptions;
  #current: PolicyWorker | undefined;
  #spare: PolicyWorker | undefined;
  #closed = false;
  readonly #answers = new Map<string, Verdict>();

  private constructor(bundle: Bundle, module: WebAssembly.Module, options: ServingOptions) {
    this.bundle = bundle;
    this.module = module;
    this.#options = options;
  }

  /**
   * @param running - a snapshot that serves; its worker that stands by is lent, for a thread takes longer to start than rules to load
   * @throws PolicyError `policy_malformed` when the module or its data cannot be used
   */
  static async start(bundle: Bundle, options: ServingOptions, running?: ServingSnapshot): Promise<ServingSnapshot> {
    const same = running?.bundle.digests.rules === bundle.digests.rules;
    const module = same && running !== undefined ? running.module : await compile(bundle.wasm);
    const serving = new ServingSnapshot(bundle, module, options);
    const lent = running === undefined ? undefined : running.#lend();
    if (lent !== undefined) {
      await serving.#load(lent);
      serving.#current = lent;
      return serving;
    }
    const started = await Promise.allSettled([serving.#startWorker(), serving.#startWorker()]);
    const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = started.find((one) => one.status === 'rejected');
    if (refused !== undefined) {
      await Promise.all(workers.map((worker) => worker.terminate()));
      throw refused.reason;
    }
    [serving.#current, serving.#spare] = workers;
    return serving;
  }

  get ready(): boolean {
    return this.#current !== undefined;
  }

  /** Answers one question, given as JSON of its Rego form. Whatever goes wrong is a deny, and the worker it went wrong in is replaced. */
  ask(text: string): Verdict {
    const worker = this.#current;
    if (worker === undefined) return denial('policy_not_ready', 'Policy is being loaded; ask again.');
    const evaluation = worker.evaluate(text, this.#options.deadlineMs);
    if (evaluation.outcome === 'answer') return readVerdict(evaluation.text);
    this.#discard(worker);
    return denialOf(evaluation, this.#options.deadlineMs);
  }

  /** As `ask`, for questions that are put to one snapshot again and again: the answer is kept. */
  askAgain(text: string): Verdict {
    const held = this.#answers.get(text);
    if (held !== undefined) return held;
    const answer = this.ask(text);
    if (this.#answers.size < MOST_ANSWERS) this.#answers.set(text, answer);
    return answer;
  }

  /** Takes the place of another snapshot, and the worker that served it to stand by. */
  succeed(old: ServingSnapshot | undefined): void {
    const worker = old === undefined ? undefined : old.#retire();
    if (worker === undefined) {
      this.restock();
      return;
    }
    this.#load(worker).then(
      () => {
        if (this.#closed || this.#spare !== undefined) return void worker.terminate();
        this.#spare = worker;
      },
      () => void this.#refill(),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    const workers = [this.#current, this.#spare];
    this.#current = undefined;
    this.#spare = undefined;
    await Promise.all(workers.map((worker) => worker?.terminate()));
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

  /** Starts one worker for the place that is empty. */
  async #refill(): Promise<void> {
    if (this.#closed) return;
    try {
      const worker = await this.#startWorker();
      if (this.#closed || (this.#current !== undefined && this.#spare !== undefined)) await worker.terminate();
      else if (this.#current === undefined) this.#current = worker;
      else this.#spare = worker;
    } catch {
      // It did start before: this machine lacks something just now.
      this.#options.clock.after(this.#options.retryMs, () => void this.#refill());
    }
  }

  /** Gives the worker away that stands by; another one is started, should this snapshot go on. */
  #lend(): PolicyWorker | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare;
  }

  /** Gives the worker away that serves: this snapshot is done. */
  #retire(): PolicyWorker | undefined {
    this.#closed = true;
    const [worker, spare] = [this.#current, this.#spare];
    this.#current = undefined;
    this.#spare = undefined;
    void spare?.terminate();
    return worker;
  }

  /** Puts rules and data of this snapshot into a worker of another. */
  async #load(worker: PolicyWorker): Promise<void> {
    try {
      await worker.load({ module: this.module, dataJson: this.bundle.dataJson, warmUp: warmUpInputs() });
      worker.onEnd(() => this.#discard(worker));
    } catch (error) {
      void worker.terminate();
      throw error;
    }
  }

  /** A snapshot that lent its worker and goes on gets another. */
  restock(): void {
    if (this.#spare === undefined) void this.#refill();
  }

  async #startWorker(): Promise<PolicyWorker> {
    const worker = await PolicyWorker.start({
      module: this.module,
      dataJson: this.bundle.dataJson,
      entrypoint: ENTRYPOINT,
      memoryBytes: this.#options.memoryBytes,
      warmUp: warmUpInputs(),
      clock: this.#options.clock,
    });
    worker.onEnd(() => this.#discard(worker));
    return worker;
  }
}

/** Answers kept of one snapshot: the table and the probes. */
const MOST_ANSWERS = 2_000;

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
