import { readlinkSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type LoadedPolicy, loadPolicy } from '@open-policy-agent/opa-wasm';
import { ANSWER_BYTES, ANSWERED, ASKED, BEGUN, OUTCOME, OUTCOMES, QUESTION_BYTES, sharedCall, type WorkerOutcome } from './shared-call.ts';

/** What a policy worker is started with. */
export interface WorkerStart {
  readonly module: WebAssembly.Module;
  readonly dataJson: string;
  readonly entrypoint: string;
  readonly memoryPages: number;
  readonly warmUp: readonly string[];
  readonly shared: SharedArrayBuffer;
}

/** The worker's only message: it can be asked. `thread` is its id below /proc/self/task, empty where there is none. */
export interface WorkerReady {
  readonly thread: string;
}

const start = workerData as WorkerStart;
const { words, cpu, question, answer } = sharedCall(start.shared);
const policy: LoadedPolicy = await loadPolicy(start.module, { initial: 5, maximum: start.memoryPages });
policy.setData(JSON.parse(start.dataJson) as object);
if (!Object.hasOwn(policy.entrypoints, start.entrypoint)) throw new Error(`The compiled policy has no entrypoint ${start.entrypoint}.`);
for (const input of start.warmUp) answerQuestion(question.write(input));

parentPort?.postMessage({ thread: threadId() } satisfies WorkerReady);

// This thread does nothing else and never returns to its event loop: it ends when it is terminated.
for (let seen = 0; ; ) {
  Atomics.wait(words, ASKED, seen);
  seen = Atomics.load(words, ASKED);
  const { user, system } = process.threadCpuUsage();
  cpu[0] = user + system;
  Atomics.store(words, BEGUN, seen);
  Atomics.store(words, OUTCOME, OUTCOMES.indexOf(answerQuestion(Atomics.load(words, QUESTION_BYTES))));
  Atomics.store(words, ANSWERED, seen);
  Atomics.notify(words, ANSWERED);
}

function answerQuestion(questionBytes: number): WorkerOutcome {
  try {
    const input = Uint8Array.from(question.subarray(0, questionBytes));
    const text = JSON.stringify(policy.evaluate(input.buffer, start.entrypoint));
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
