import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ConfigError, OutworkError, PolicyError, PrerequisiteError, SandboxError, UsageError } from '../../core/errors.ts';
import type { KernelAnswer, KernelProcessOptions, KernelReplies, KernelRequest } from './protocol.ts';

/** Time a kernel process has to close before it is killed. */
const CLOSE_MS = 10_000;

/** A kernel process that ended, or an error of it whose class has no exit code of its own. */
export class KernelProcessError extends OutworkError<string> {}

/** Errors that cross the process boundary as what they were, because exit codes hang on the class. */
const AREAS: Readonly<Record<string, new (code: never, message: string, detail?: { hint?: string }) => OutworkError>> = {
  ConfigError,
  PolicyError,
  PrerequisiteError,
  SandboxError,
  UsageError,
};

/** One kernel in a process of its own; see `kernel-process.ts`. */
export class KernelSession implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  readonly #exited: Promise<void>;
  #nextId = 1;

  private constructor(child: ChildProcess) {
    this.#child = child;
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-4096);
    });
    child.on('message', (answer: KernelAnswer) => this.#settle(answer));
    this.#exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        const message = `the kernel process ended (${signal ?? `exit ${code}`})${stderr === '' ? '' : `: ${stderr.trim()}`}`;
        for (const { reject } of this.#waiting.values()) reject(new KernelProcessError('kernel_process_ended', message));
        this.#waiting.clear();
        resolve();
      });
    });
  }

  /** Resolves when the kernel claims runs; an abort closes it. @throws what the kernel refused to start for: PrerequisiteError, ConfigError, … */
  static async start(options: KernelProcessOptions, signal: AbortSignal): Promise<KernelSession> {
    signal.throwIfAborted();
    const path = fileURLToPath(new URL('./kernel-process.ts', import.meta.url));
    // An emitted package holds .js beside where development has .ts.
    const child = fork(import.meta.url.endsWith('.js') ? path.replace(/\.ts$/, '.js') : path, [JSON.stringify(options)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // What is measured has the heap that a kernel started like this process has.
      execArgv: ['--disable-warning=ExperimentalWarning', ...process.execArgv.filter((flag) => flag.startsWith('--max-semi-space-size='))],
    });
    const session = new KernelSession(child);
    const abort = () => void session.close();
    signal.addEventListener('abort', abort, { once: true });
    child.once('exit', () => signal.removeEventListener('abort', abort));
    try {
      await session.#wait(0);
    } catch (error) {
      await session.close();
      throw error;
    }
    return session;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async ask<Op extends KernelRequest['op']>(request: Extract<KernelRequest, { op: Op }>): Promise<KernelReplies[Op]> {
    const id = this.#nextId;
    this.#nextId += 1;
    const reply = this.#wait(id);
    this.#child.send({ id, request }, (error) => {
      if (error !== null) this.#settle({ id, area: 'KernelProcessError', error: { code: 'kernel_process_ended', message: error.message } });
    });
    return (await reply) as KernelReplies[Op];
  }

  /** Ends the process without a chance to clean up, as a crash would. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #wait(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #settle(answer: KernelAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ('error' in answer) {
      const { code, message, hint } = answer.error;
      const Area = AREAS[answer.area] ?? KernelProcessError;
      waiting?.reject(new Area(code as never, message, hint === undefined ? {} : { hint }));
    } else waiting?.resolve(answer.value);
  }
}
