import type { Json } from '../json.ts';
import { CAPACITY } from '../limits.ts';
import type { RecordedOutcome } from '../ports/store.ts';
import type { Amounts } from './ceilings.ts';
import type { CapabilityDescriptor } from './descriptors.ts';
import { clampOutput } from './floor.ts';
import type { CapabilityName, ShellExecArgs } from './types.ts';

/** A reply nobody has seen yet, in tokens. */
const REPLY_TOKENS = 2048;
/** Characters of a message that make about one token. */
const CHARACTERS_PER_TOKEN = 4;

/** What a call may use at most, as far as it can be told before it is made: what is reserved on its accounts. */
export function estimateOf(descriptor: CapabilityDescriptor, args: Json): Amounts {
  if (descriptor.name === 'model.generate') {
    const { messages } = args as unknown as { readonly messages: readonly { readonly content?: unknown }[] };
    const characters = messages.reduce((sum, { content }) => sum + (typeof content === 'string' ? content.length : 0), 0);
    return { concurrency: 1, tokens: Math.ceil(characters / CHARACTERS_PER_TOKEN) + REPLY_TOKENS };
  }
  if (descriptor.runsIn !== 'command') return { concurrency: 1 };
  const { timeoutMs, outputBytes } = args as unknown as ShellExecArgs;
  return {
    concurrency: 1,
    processes: 1,
    wallMs: timeoutMs ?? CAPACITY.commandTimeoutMs,
    outputBytes: 2 * clampOutput(outputBytes ?? CAPACITY.outputDefaultBytes),
  };
}

/**
 * What a call has used. Of a command the time that the kernel has seen pass, whoever carried it out, and the output that was kept; of a
 * model what its gateway tells.
 */
export function spentOn(capability: CapabilityName, outcome: RecordedOutcome, elapsedMs: number): Amounts {
  const result = outcome.kind === 'result' ? (outcome.result as { readonly [name: string]: Json } | null) : null;
  if (capability === 'shell.exec') {
    const size = (text: Json | undefined) => (typeof text === 'string' ? Buffer.byteLength(text) : 0);
    return { wallMs: Math.max(0, Math.round(elapsedMs)), outputBytes: size(result?.stdout) + size(result?.stderr) };
  }
  if (capability !== 'model.generate') return {};
  const { inputTokens = 0, outputTokens = 0, costMicros = 0 } = (result?.usage ?? {}) as Record<string, number>;
  return { tokens: inputTokens + outputTokens, moneyMicros: costMicros };
}
