import type { CallReply, CallRequest, CommandOutcome, LocalPermit, ShellExecArgs } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { CommandProgress, ToolCommand } from '../../core/ports/placement.ts';
import type { CheckpointBody, MembraneClient, PermitClose, RunContext, SteerReply } from '../../core/wire/protocol.ts';
import { WireError, wireError } from './errors.ts';
import type { Wire } from './http-wire.ts';

export interface ClientDeps {
  readonly wire: Wire;
  readonly token: string;
  /** Ends when the run is cancelled: requests are given up, commands ended; an outcome is reported all the same. */
  readonly signal: AbortSignal;
  run(command: ToolCommand, onProgress: (progress: CommandProgress) => void): Promise<CommandOutcome>;
}

type FinalReply = Exclude<CallReply, { effect: 'permit' }>;

/** Binds the membrane to HTTP and one run's token. A permit is carried out and closed in here. */
export function bindMembrane({ wire, token, signal, run }: ClientDeps): MembraneClient {
  const settle = async (request: CallRequest, reply: CallReply): Promise<FinalReply> => {
    if (reply.effect !== 'permit') return reply;
    const { step, call } = request.key;
    // Progress that does not get through is not missed: the next one tells more.
    const onProgress = (progress: CommandProgress) =>
      void wire.post('progress.emit', token, { data: { command: `${step}.${call}`, ...progress } }).catch(() => undefined);
    const close = await carryOut(request, reply.permit, (command) => run(command, onProgress));
    return (await wire.post('permit.close', token, close)) as FinalReply;
  };
  return {
    context: async () => (await twice(() => wire.post('context.get', token, {}, signal))) as RunContext,
    checkpoint: async () => {
      const reply = (await twice(() => wire.post('checkpoint.get', token, {}, signal))) as { checkpoint: CheckpointBody | null };
      return reply.checkpoint ?? undefined;
    },
    call: async (request) => settle(request, (await wire.post('call', token, request, signal)) as CallReply),
    callStream: async (request, onDelta) => {
      let reply: CallReply | undefined;
      await wire.postStream('call.stream', token, request, (line) => (reply = streamLine(line, onDelta) ?? reply), signal);
      if (reply === undefined) throw new WireError(0, 'guest_lost', 'call.stream ended without a reply');
      return settle(request, reply);
    },
    progress: async (data: Json) => {
      await wire.post('progress.emit', token, { data }, signal);
    },
    steer: async (afterSeq) => (await twice(() => wire.post('steer.next', token, { afterSeq }, signal))) as SteerReply,
  };
}

function streamLine(value: unknown, onDelta: (text: string) => void): CallReply | undefined {
  const line = value as { delta?: string; reply?: CallReply; error?: { code: string; message: string } };
  if (line.error !== undefined) throw new WireError(500, line.error.code, line.error.message);
  if (line.delta !== undefined) onDelta(line.delta);
  return line.reply;
}

async function carryOut(
  request: CallRequest,
  permit: LocalPermit,
  run: (command: ToolCommand) => Promise<CommandOutcome>,
): Promise<PermitClose> {
  try {
    return { permit: permit.id, outcome: await run(underPermit(request.args as unknown as ShellExecArgs, permit)) };
  } catch (error) {
    return { permit: permit.id, error: wireError(error, 'dispatch_failed') };
  }
}

/** The command as asked, held to the permit's bounds. Its length is a duration: the kernel's clock and this one need not agree. */
function underPermit(args: ShellExecArgs, permit: LocalPermit): ToolCommand {
  const { timeoutMs, ...command } = args;
  return {
    ...command,
    // Files that were approved stand in place of those that the arguments name.
    argv: permit.argv ?? args.argv,
    timeoutMs: Math.min(timeoutMs ?? permit.timeoutMs, permit.timeoutMs),
    // The kernel has clamped what was asked for: this is the limit of every placement.
    outputBytes: permit.outputBytes,
  };
}

/** Reads change nothing: one lost connection is no reason to fail a run. */
async function twice<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof WireError && error.code === 'guest_lost') return ask();
    throw error;
  }
}
