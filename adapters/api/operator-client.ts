import { lstatSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as errors from '../../core/errors.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { holderOf } from '../config/state-holder.ts';
import { OPERATOR_METHODS, type OperatorAnswer, type OperatorMethod } from './operator-methods.ts';

/** Largest answer that is read: a run with every call it may make, outputs included. */
const ANSWER_BYTES = 256 * 1024 * 1024;

/** How long a kernel may be silent. Longer than it ever keeps its event loop: the store waits at most half of it for another writer. */
export const SILENCE_MS = 10_000;

export interface OperatorClient extends KernelOperations, AsyncDisposable {
  close(): Promise<void>;
}

/**
 * The operations of the kernel that listens on `socketPath`; undefined when none does (no socket, or a dead one).
 * Errors are raised as the kernel raised them, class and code; when the kernel goes away: PrerequisiteError `kernel_unreachable`. An operation may
 * take as long as it likes while the kernel answers anything at all; when it is silent for `silenceMs`: PrerequisiteError `kernel_unresponsive`.
 * @throws PrerequisiteError `state_directory_unusable` when the socket is another user's; `kernel_unresponsive`
 */
export async function connectOperator(socketPath: string, silenceMs = SILENCE_MS): Promise<OperatorClient | undefined> {
  const stat = lstatSync(socketPath, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (!stat.isSocket() || stat.uid !== process.geteuid?.()) {
    throw new errors.PrerequisiteError('state_directory_unusable', `${socketPath} is not a socket of this user`);
  }
  const answers = () => isAlive(socketPath, silenceMs);
  try {
    await answers();
    return createClient(socketPath, silenceMs, answers);
  } catch (error) {
    if (isUnreachable(error)) return undefined;
    throw error;
  }
}

/** True for the error that says that the kernel behind a client has gone. */
export const isUnreachable = (error: unknown): boolean => error instanceof errors.PrerequisiteError && error.code === 'kernel_unreachable';

function createClient(socketPath: string, silenceMs: number, answers: () => Promise<void>): OperatorClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const close = async () => agent.destroy();
  const call = async (method: OperatorMethod, args: unknown[]): Promise<unknown> => {
    // A trailing undefined would arrive as null.
    while (args.length > 0 && args.at(-1) === undefined) args.pop();
    const answer = await whileAnswering(exchange(agent, socketPath, method, JSON.stringify({ args })), silenceMs, answers);
    if ('error' in answer) throw revive(answer);
    return answer.result;
  };
  const methods = Object.keys(OPERATOR_METHODS) as OperatorMethod[];
  const operations = Object.fromEntries(methods.map((method) => [method, (...args: unknown[]) => call(method, args)]));
  return { ...(operations as unknown as KernelOperations), close, [Symbol.asyncDispose]: close };
}

/** Waits for `work`; whenever it takes longer than `silenceMs`, asks whether the kernel answers at all, and gives up when it does not. */
async function whileAnswering<T>(work: Promise<T>, silenceMs: number, answers: () => Promise<void>): Promise<T> {
  const over = new AbortController();
  const watch = async (): Promise<never> => {
    for (;;) {
      await sleep(silenceMs, undefined, { signal: over.signal });
      // One that has gone, or has no room for a further connection, shows in the connection of the work itself.
      await answers().catch((error: unknown) => {
        if (!isUnreachable(error)) throw error;
      });
    }
  };
  try {
    return await Promise.race([work, watch()]);
  } finally {
    over.abort();
  }
}

/**
 * Resolves once the kernel has answered anything, on a connection of its own: those of the client may all be waiting.
 * @throws PrerequisiteError `kernel_unreachable` `kernel_unresponsive`
 */
async function isAlive(socketPath: string, silenceMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const asking = request({ agent: false, socketPath, method: 'GET', path: '/v1/', timeout: silenceMs }, (response) => {
    response.resume();
    resolve();
  });
  asking.once('timeout', () => {
    const { process: holder, hint } = holderOf(dirname(socketPath));
    reject(new errors.PrerequisiteError('kernel_unresponsive', `the kernel does not answer on ${socketPath} (${holder})`, { hint }));
    asking.destroy();
  });
  asking.once('error', (cause) => reject(gone(cause)));
  asking.end();
  return promise;
}

const gone = (cause?: unknown) =>
  new errors.PrerequisiteError('kernel_unreachable', 'the kernel of this state directory went away', { cause });

function exchange(agent: Agent, socketPath: string, method: OperatorMethod, body: string): Promise<OperatorAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<OperatorAnswer>();
  const fail = (cause?: unknown) => reject(gone(cause));
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const outgoing = request({ agent, socketPath, method: 'POST', path: `/v1/${method}`, headers }, (response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > ANSWER_BYTES) response.destroy(new Error('answer too large'));
      else chunks.push(chunk);
    });
    response.once('error', fail);
    response.once('end', () => {
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
      } catch (cause) {
        fail(cause);
      }
    });
  });
  outgoing.once('error', fail);
  outgoing.end(body);
  return promise;
}

/** Classes that travel by name. Each takes any code of its union; the kernel at the other end is of the same package. */
const AREAS: Readonly<Record<string, new (code: never, message: string, detail: errors.ErrorDetail) => errors.OutworkError>> = {
  ConfigError: errors.ConfigError,
  PrerequisiteError: errors.PrerequisiteError,
  UsageError: errors.UsageError,
  StoreError: errors.StoreError,
  MembraneError: errors.MembraneError,
  CallError: errors.CallError,
  PolicyError: errors.PolicyError,
  SandboxError: errors.SandboxError,
  RunError: errors.RunError,
  ApprovalError: errors.ApprovalError,
};

function revive(answer: Extract<OperatorAnswer, { error: unknown }>): Error {
  const { code, message, hint } = answer.error;
  const Area = Object.hasOwn(AREAS, answer.area) ? AREAS[answer.area] : undefined;
  if (Area === undefined) return new Error(message);
  return new Area(code as never, message, hint === undefined ? { retryable: answer.retryable } : { hint, retryable: answer.retryable });
}
