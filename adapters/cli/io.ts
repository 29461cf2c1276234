import type { CompiledConfig } from '../../core/config.ts';
import type { Kernel, KernelOperations } from '../../core/kernel.ts';
import type { Environment } from '../config/file.ts';
import type { Sink } from './output.ts';

/** All that a command touches of its process, so that a test can stand in for each. */
export interface Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly env: Environment;
  /** Absolute. */
  readonly cwd: string;
  /** The text of standard input, refused beyond `maxBytes`. */
  readStdin(maxBytes: number): Promise<string>;
  /** Calls `fn` for each interruption (Ctrl-C, SIGTERM, SIGHUP) with its number from 1; the returned function stops that. */
  onInterrupt(fn: (count: number) => void): () => void;
  /** Calls `fn` when standard output takes no more: `EPIPE` when its reader has gone, else why (`ENOSPC`, …). */
  onStdoutFailed(fn: (error: NodeJS.ErrnoException) => void): void;
  /** Resolves when standard output has taken all that was written, or has failed. */
  stdoutTaken(): Promise<void>;
  /** Milliseconds since the epoch, as the person at the terminal has it. */
  now(): number;
  /** Leaves at once. */
  exit(code: number): void;
  createKernel(config: CompiledConfig): Promise<Kernel>;
  /** The operations of a state directory whose kernel does not run. */
  openRows(config: CompiledConfig): Promise<KernelOperations & { close(): Promise<void> }>;
}

/**
 * Two deliveries of one Ctrl-C: the terminal signals the launcher and this process, and the launcher passes its own on. They are
 * microseconds apart; a person's second press is not.
 */
const SAME_PRESS_MS = 150;

/** The real process. */
export function processIo(): Io {
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    readStdin,
    onInterrupt,
    onStdoutFailed(fn) {
      process.stdout.on('error', fn);
      // A terminal that has gone away is no reason to fail either.
      process.stderr.on('error', () => undefined);
    },
    stdoutTaken: () => new Promise((resolve) => void process.stdout.write('', () => resolve())),
    now: () => Date.now(),
    exit: (code) => process.exit(code),
    async createKernel(config) {
      const { createKernel } = await import('../compose.ts');
      return createKernel(config);
    },
    async openRows(config) {
      const { openAdministration } = await import('../administration.ts');
      return openAdministration(config);
    },
  };
}

function onInterrupt(fn: (count: number) => void): () => void {
  let count = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  const listener = () => {
    const nowMs = performance.now();
    if (nowMs - lastMs < SAME_PRESS_MS) return;
    lastMs = nowMs;
    count += 1;
    fn(count);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

async function readStdin(maxBytes: number): Promise<string> {
  const { UsageError } = await import('../../core/errors.ts');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) throw new UsageError('invalid_argument', `standard input is larger than ${maxBytes} bytes`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new UsageError('invalid_argument', 'standard input is not UTF-8 text', { cause });
  }
}
