import type { CapacityName } from '../config.ts';
import { CallError, OutworkError, SandboxError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { BackgroundOperation, CommandProgress, Seat } from '../ports/placement.ts';
import type { RecordedOutcome, Store, StoreEffect } from '../ports/store.ts';
import type { ModelGateway, ModelRequest } from '../seams/model-gateway.ts';
import { ILL_FORMED_ARGS, storableFault } from './arguments.ts';
import { type CapabilityDescriptor, fileOperation } from './descriptors.ts';
import type { Permit } from './permits.ts';
import { StreamRedactor, scrubJson } from './redact.ts';
import { clipText } from './truncate.ts';
import type { CommandOutcome, ShellBackgroundArgs, ShellExecArgs } from './types.ts';

export interface DispatchDeps {
  readonly store: Store;
  readonly model: ModelGateway;
  readonly capacity: Readonly<Record<CapacityName, number>>;
}

export interface Dispatch {
  readonly permit: Permit;
  readonly descriptor: CapabilityDescriptor;
  readonly args: Json;
  readonly step: number;
  readonly seat: Seat;
  readonly signal: AbortSignal;
  readonly secrets: readonly string[];
  readonly onDelta: ((text: string) => void) | undefined;
  readonly onProgress?: ((progress: CommandProgress) => void) | undefined;
}

export interface Dispatched {
  readonly outcome: RecordedOutcome;
  /** Made durable together with the row's end. */
  readonly effect?: StoreEffect;
}

/**
 * Carries a permitted call out on the kernel's side. What the call itself gets wrong (a missing file, a refused path) is an outcome;
 * what leaves its end unknown (a lost sandbox, an abort) is thrown, and the row stays `dispatched` for the next attempt to judge.
 */
export async function dispatch(deps: DispatchDeps, work: Dispatch): Promise<RecordedOutcome> {
  try {
    return await carryOut(deps, work);
  } catch (error) {
    if (endIsUnknown(error)) throw error;
    // Stopped from outside: whoever still waits is of an attempt that is over, or of a call whose time is.
    if (work.signal.aborted) throw new CallError('stale_fence', 'The call was stopped before its end', { cause: error });
    const code = error instanceof OutworkError ? error.code : 'dispatch_failed';
    return { kind: 'error', code, message: error instanceof Error ? clipText(error.message, 2000) : 'failed' };
  }
}

const endIsUnknown = (error: unknown): boolean =>
  error instanceof SandboxError && (error.code === 'guest_lost' || error.code === 'not_running');

async function carryOut(deps: DispatchDeps, work: Dispatch): Promise<RecordedOutcome> {
  const { descriptor, args, permit, seat, signal, onProgress } = work;
  switch (descriptor.runsIn) {
    case 'gateway':
      return result(await generate(deps, work));
    case 'files':
      return result((await seat.tools.file(fileOperation(descriptor.name, args), signal)) as unknown as Json);
    case 'command':
      return result((await seat.tools.exec(commandOf(args, permit, deps.capacity), signal, onProgress)) as unknown as Json);
    case 'background':
      return result((await seat.tools.background(backgroundOperation(args, permit), signal)) as unknown as Json);
    case 'store':
      throw new CallError('dispatch_failed', `${descriptor.name} is carried out where it is recorded`);
  }
}

const result = (value: Json): RecordedOutcome => ({ kind: 'result', result: value, source: 'kernel' });

async function generate(deps: DispatchDeps, { args, permit, step, signal, secrets, onDelta }: Dispatch): Promise<Json> {
  const redactor = new StreamRedactor(secrets);
  const emit = (text: string) => {
    if (text !== '') onDelta?.(text);
  };
  // What the loop has gathered may hold a value that became a live secret only later.
  const request = (secrets.length === 0 ? args : scrubJson(args, secrets)) as unknown as ModelRequest;
  const reply = await deps.model.generate(request, { run: permit.scope.run, step }, signal, (delta) => emit(redactor.push(delta)));
  emit(redactor.flush());
  const toolCalls = reply.toolCalls.map((call) =>
    storableFault(call.args) === 'ill_formed_text' ? { ...call, args: ILL_FORMED_ARGS } : call,
  );
  return { ...reply, toolCalls } as unknown as Json;
}

/** Clamped bounds of a command: what the caller wished, held to the permit's terms and the configured maxima. */
export function commandBounds(
  args: Json,
  permit: Pick<Permit, 'terms'>,
  capacity: DispatchDeps['capacity'],
): { timeoutMs: number; outputBytes: number } {
  const wished = (args as unknown as ShellExecArgs).timeoutMs ?? capacity.commandTimeoutMs;
  return { timeoutMs: Math.min(wished, capacity.commandTimeoutMaxMs, permit.terms.reserveWallMs), outputBytes: permit.terms.outputBytes };
}

function commandOf(args: Json, permit: Permit, capacity: DispatchDeps['capacity']) {
  const { argv, cwd, env, stdin, save, background, lifetimeMs } = args as unknown as ShellExecArgs;
  return {
    argv: permit.argv ?? argv,
    ...commandBounds(args, permit, capacity),
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(stdin === undefined ? {} : { stdin }),
    ...(save === undefined ? {} : { save }),
    ...(background === undefined ? {} : { background }),
    ...(lifetimeMs === undefined ? {} : { lifetimeMs }),
  };
}

function backgroundOperation(args: Json, { terms }: Pick<Permit, 'terms'>): BackgroundOperation {
  const operation = args as unknown as ShellBackgroundArgs;
  return operation.op === 'tail' ? { op: 'tail', id: operation.id, maxBytes: terms.outputBytes } : operation;
}

/** What a call means whose whole effect is on the store: the reads are made, the effect is left to the write that records the call. */
export async function storeEffect(
  deps: Pick<DispatchDeps, 'store'>,
  thread: string,
  descriptor: CapabilityDescriptor,
  args: Json,
): Promise<Dispatched> {
  const value = args as unknown as { body: string; schema: string; version: number; afterSeq?: number; limit?: number };
  switch (descriptor.name) {
    case 'message.post':
      return { outcome: result({ posted: true }), effect: { kind: 'message', body: value.body } };
    case 'checkpoint.save':
      return {
        outcome: result({ saved: true }),
        effect: { kind: 'checkpoint', schema: value.schema, version: value.version, body: value.body },
      };
    case 'thread.read': {
      const messages = await deps.store.threads.messages(thread, { afterSeq: value.afterSeq ?? 0, limit: value.limit ?? 50 });
      return { outcome: result({ messages: messages.map(({ seq, author, user, body }) => ({ seq, author, user, body })) }) };
    }
    default:
      throw new CallError('dispatch_failed', `${descriptor.name} has no effect on the store`);
  }
}

/** The executor's report of a local command as a recorded outcome: its own claim, never kernel evidence. */
export function claimedOutcome(outcome: CommandOutcome | undefined, error: { code: string; message: string } | undefined): RecordedOutcome {
  if (outcome !== undefined) return { kind: 'result', result: outcome as unknown as Json, source: 'claimed' };
  return { kind: 'error', code: (error?.code ?? 'dispatch_failed').slice(0, 64), message: clipText(error?.message ?? 'no outcome', 2000) };
}
