import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CompiledConfig } from '../../core/config.ts';
import { StoreError } from '../../core/errors.ts';
import type { Kernel, KernelOperations } from '../../core/kernel.ts';
import { connectOperator } from '../api/operator-client.ts';
import { OPERATOR_SOCKET } from '../api/operator-methods.ts';
import { ensureStateDir } from '../config/state-dir.ts';

/** How long a command waits for a state directory that another command holds for a moment. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_POLL_MS = 100;

/** The operations of the kernel that owns a state directory, wherever it runs. */
export interface KernelSession extends AsyncDisposable {
  readonly operations: KernelOperations;
  /** True when the kernel is in this process; else it is reached through the operator socket. */
  readonly own: boolean;
  /** Closes the connection, or the kernel when it is our own. */
  close(): Promise<void>;
}

export type SessionOptions =
  /** Start a kernel (it claims runs) and serve its operations on the operator socket meanwhile. */
  | { readonly execute: true; createKernel(config: CompiledConfig): Promise<Kernel> }
  /** Only rows are read and written: open no more than what that takes. */
  | { readonly execute: false; openRows(config: CompiledConfig): Promise<KernelOperations & { close(): Promise<void> }> };

/**
 * Connects to the kernel that runs, else opens one in this process, or its store alone. When another process holds the state directory
 * without answering yet (it is starting, ending, or a short command), waits for it.
 * @throws StoreError `state_locked` when it stays held; PrerequisiteError `state_directory_unusable`
 */
export async function openSession(config: CompiledConfig, options: SessionOptions): Promise<KernelSession> {
  ensureStateDir(config.stateDir);
  const socketPath = join(config.stateDir, OPERATOR_SOCKET);
  for (let waitedMs = 0; ; waitedMs += LOCK_POLL_MS) {
    const client = await connectOperator(socketPath);
    if (client !== undefined) return { operations: client, own: false, close: client.close, [Symbol.asyncDispose]: client.close };
    try {
      return await openOwn(config, socketPath, options);
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'state_locked') || waitedMs >= LOCK_PATIENCE_MS) throw error;
    }
    await sleep(LOCK_POLL_MS);
  }
}

/** Whether a kernel may be listening: cheap, and only a hint. */
export const mayBeRunning = (config: CompiledConfig): boolean => existsSync(join(config.stateDir, OPERATOR_SOCKET));

async function openOwn(config: CompiledConfig, socketPath: string, options: SessionOptions): Promise<KernelSession> {
  if (!options.execute) {
    const rows = await options.openRows(config);
    const close = () => rows.close();
    return { operations: rows, own: true, close, [Symbol.asyncDispose]: close };
  }
  const kernel = await options.createKernel(config);
  let stopServing = async () => {};
  let closing: Promise<void> | undefined;
  // Once: a second close must not let go of a directory that somebody else has taken meanwhile.
  const close = () => {
    // First the door, then the house: a client sees the connection end, never half an answer.
    closing ??= stopServing().then(() => kernel.close());
    return closing;
  };
  try {
    const { serveOperations } = await import('../api/operator-server.ts');
    const server = await serveOperations(kernel, socketPath);
    stopServing = () => server.close();
    await kernel.start();
  } catch (error) {
    await close();
    throw error;
  }
  return { operations: kernel, own: true, close, [Symbol.asyncDispose]: close };
}
