import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Io } from '../../adapters/cli/io.ts';
import { main } from '../../adapters/cli/main.ts';
import type { CompiledConfig } from '../../core/config.ts';
import { StoreError } from '../../core/errors.ts';
import type { CommandResult } from '../support/command-line.ts';
import { createMemoryKernel, type MemoryKernel } from '../support/memory-kernel.ts';

/** A command that is running. */
export interface RunningCommand {
  readonly result: Promise<CommandResult>;
  /** What it has printed so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves when standard output or error contains the text. */
  prints(text: string): Promise<void>;
  interrupt(): void;
  /** The reader of its standard output goes away. */
  closeStdout(): void;
  /** Codes given to `exit`, in order. */
  readonly exits: readonly number[];
}

/**
 * Command lines in this process, over one state directory and one in-memory "store": at most one open kernel owns it, as the lock would
 * have it, and a kernel that is opened again finds what the last one left.
 */
export class CliWorld implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'outwork-cli-'));
  readonly env: Record<string, string> = { HOME: this.dir };
  stdin = '';
  columns: number | undefined;
  #kernel: MemoryKernel | undefined;
  #open = false;

  /** Rows of the state directory; made at the first open. */
  get kernel(): MemoryKernel {
    if (this.#kernel === undefined) throw new Error('no kernel was opened yet');
    return this.#kernel;
  }

  readonly createKernel = async (config: CompiledConfig): Promise<MemoryKernel> => {
    if (this.#open) throw new StoreError('state_locked', 'another process owns the state directory');
    this.#open = true;
    this.#kernel ??= createMemoryKernel(config);
    const rows = this.#kernel;
    let closed = false;
    const close = async () => {
      if (closed) throw new Error('a kernel was closed twice');
      closed = true;
      this.#open = false;
      await rows.close();
    };
    return Object.assign(Object.create(Object.getPrototypeOf(rows), Object.getOwnPropertyDescriptors(rows)) as MemoryKernel, { close });
  };

  start(...args: string[]): RunningCommand {
    const text = { stdout: '', stderr: '' };
    const exits: number[] = [];
    const listeners = new Set<(count: number) => void>();
    const waiting = new Set<() => void>();
    let presses = 0;
    let closed = () => {};
    const sink = (name: 'stdout' | 'stderr') => ({
      columns: this.columns,
      isTTY: this.columns !== undefined && name === 'stdout',
      write(chunk: string) {
        text[name] += chunk;
        for (const check of waiting) check();
      },
    });
    const io: Io = {
      stdout: sink('stdout'),
      stderr: sink('stderr'),
      env: this.env,
      cwd: this.dir,
      readStdin: async () => this.stdin,
      onInterrupt(fn) {
        listeners.add(fn);
        return () => listeners.delete(fn);
      },
      onStdoutFailed(fn) {
        closed = () => fn(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
      stdoutTaken: async () => undefined,
      now: () => Date.now(),
      exit: (code) => exits.push(code),
      createKernel: this.createKernel,
      openRows: this.createKernel,
    };
    const result = main(args, io).then((code) => ({ code, ...text }));
    return {
      result,
      exits,
      get stdout() {
        return text.stdout;
      },
      get stderr() {
        return text.stderr;
      },
      prints: (wanted) =>
        new Promise((resolve) => {
          const check = () => {
            if (!`${text.stdout}${text.stderr}`.includes(wanted)) return;
            waiting.delete(check);
            resolve();
          };
          waiting.add(check);
          check();
        }),
      interrupt() {
        presses += 1;
        for (const fn of listeners) fn(presses);
      },
      closeStdout: () => closed(),
    };
  }

  run(...args: string[]): Promise<CommandResult> {
    return this.start(...args).result;
  }

  /** As `run`, with `--json`: the code and the one document. */
  async json(...args: string[]): Promise<{ code: number; document: unknown; stderr: string }> {
    const { code, stdout, stderr } = await this.run(...args, '--json');
    return { code, document: JSON.parse(stdout), stderr };
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
