import { readlinkSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { type LoadedPolicy, loadPolicy } from '@open-policy-agent/opa-wasm';
import {
  ANSWER_BYTES,
  ANSWERED,
  ASKED,
  BEGUN,
  LOAD,
  OUTCOME,
  OUTCOMES,
  QUESTION_BYTES,
  sharedCall,
  WANTED,
  type WorkerOutcome,
} from './shared-call.ts';

/** Rules and data of a policy worker. */
export interface WorkerLoad {
  readonly module: WebAssembly.Module;
  readonly dataJson: string;
  readonly warmUp: readonly string[];
}

/** What a policy worker is started with. */
export interface WorkerStart extends WorkerLoad {
  readonly entrypoint: string;
  readonly memoryPages: number;
  readonly shared: SharedArrayBuffer;
}

/**
 * The worker's only message, once for its start and once for each load: it can be asked, or `fault` says why not. `thread` is its id below
 * /proc/self/task, empty where there is none.
 */
export interface WorkerReady {
  readonly thread: string;
  readonly fault?: string;
}

const start = workerData as WorkerStart;
const { words, cpu, question, answer } = sharedCall(start.shared);
let policy: LoadedPolicy = await load(start);

parentPort?.postMessage({ thread: threadId() } satisfies WorkerReady);

// This thread does nothing else and never returns to its event loop: it ends when it is terminated.
for (let seen = 0; ; ) {
  Atomics.wait(words, ASKED, seen);
  seen = Atomics.load(words, ASKED);
  if (Atomics.load(words, WANTED) === LOAD) {
    await loadAgain();
    continue;
  }
  const { user, system } = process.threadCpuUsage();
  cpu[0] = user + system;
  Atomics.store(words, BEGUN, seen);
  Atomics.store(words, OUTCOME, OUTCOMES.indexOf(answerQuestion(policy, Atomics.load(words, QUESTION_BYTES))));
  Atomics.store(words, ANSWERED, seen);
  Atomics.notify(words, ANSWERED);
}

async function load({ module, dataJson, warmUp }: WorkerLoad): Promise<LoadedPolicy> {
  const loaded = await loadPolicy(module, { initial: 5, maximum: start.memoryPages });
  loaded.setData(JSON.parse(dataJson) as object);
  if (!Object.hasOwn(loaded.entrypoints, start.entrypoint)) throw new Error(`The compiled policy has no entrypoint ${start.entrypoint}.`);
  for (const input of warmUp) answerQuestion(loaded, question.write(input));
  return loaded;
}

async function loadAgain(): Promise<void> {
  try {
    if (parentPort === null) throw new Error('This thread has no parent.');
    policy = await load(receiveMessageOnPort(parentPort)?.message as WorkerLoad);
    parentPort.postMessage({ thread: threadId() } satisfies WorkerReady);
  } catch (error) {
    parentPort?.postMessage({ thread: '', fault: error instanceof Error ? error.message : String(error) } satisfies WorkerReady);
  }
}

function answerQuestion(asked: LoadedPolicy, questionBytes: number): WorkerOutcome {
  try {
    const input = Uint8Array.from(question.subarray(0, questionBytes));
    const text = JSON.stringify(asked.evaluate(input.buffer, start.entrypoint));
    if (Buffer.byteLength(text) > answer.byteLength) return 'answer_too_large';
    Atomics.store(words, ANSWER_BYTES, answer.write(text));
    return 'answer';
  } catch (error) {
    // OPA aborts with this text when `memory.grow` fails; the SDK's own growth is a RangeError. A stack overflow is one too, and a trap.
    const text = error instanceof Error ? error.message : String(error);
    return text.startsWith('opa_malloc') || text.includes('memory size exceeded') ? 'memory' : 'trap';
  }
}

function threadId(): string {
  try {
    return readlinkSync('/proc/thread-self').split('/').at(-1) ?? '';
  } catch {
    return '';
  }
}
