import type { CallReply } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { ModelMessage, ToolCall } from '../../core/seams/model-gateway.ts';
import type { CheckpointBody, RunContext } from '../../core/wire/protocol.ts';

/** All that the loop knows at the start of a step; a checkpoint is this. */
export interface LoopState {
  readonly step: number;
  /** Newest message of the thread that the loop has taken in. */
  readonly seenSeq: number;
  readonly messages: readonly ModelMessage[];
}

const SCHEMA = 'outwork.loop';
const VERSION = 1;
/** One string inside a tool result, as the model sees it. */
const TEXT_CHARACTERS = 8 * 1024;
/** One string inside the arguments of a tool call that the model made earlier. */
const ARGUMENT_CHARACTERS = 64 * 1024;
/** A checkpoint as it goes over the wire: its text inside JSON, escaped again. */
const CHECKPOINT_BYTES = 700 * 1024;

export function freshState(context: RunContext): LoopState {
  const messages = context.messages.map(
    ({ author, body }): ModelMessage => ({ role: author === 'agent' ? 'assistant' : 'user', content: body }),
  );
  return { step: 0, seenSeq: Math.max(0, ...context.messages.map((message) => message.seq)), messages };
}

/** @throws Error with code `checkpoint_damaged` when it was written by another loop */
export function restoreState({ schema, version, body }: CheckpointBody): LoopState {
  if (schema !== SCHEMA || version !== VERSION) {
    throw Object.assign(new Error(`This loop cannot read a checkpoint of ${schema} version ${version}`), { code: 'checkpoint_damaged' });
  }
  return JSON.parse(body) as LoopState;
}

/** The state as a checkpoint, and the state that goes with it: what is oldest of tool calls and results is left out when all would be too much. */
export function checkpointOf(state: LoopState): { state: LoopState; checkpoint: CheckpointBody } {
  let messages = state.messages;
  for (;;) {
    const kept = { ...state, messages };
    const body = JSON.stringify(kept);
    const oldest = messages.findIndex((message) => lighter(message) !== message);
    if (oldest === -1 || Buffer.byteLength(JSON.stringify(body)) <= CHECKPOINT_BYTES) {
      return { state: kept, checkpoint: { schema: SCHEMA, version: VERSION, body } };
    }
    messages = messages.with(oldest, lighter(messages[oldest] as ModelMessage));
  }
}

/** The message without its result or its arguments; the same one when nothing is left to be left out. */
function lighter(message: ModelMessage): ModelMessage {
  if (message.role === 'tool') return message.content === LEFT_OUT ? message : { ...message, content: LEFT_OUT };
  if (message.role !== 'assistant' || message.toolCalls?.some(({ args }) => args !== LEFT_OUT) !== true) return message;
  return { ...message, toolCalls: message.toolCalls.map((toolCall) => ({ ...toolCall, args: LEFT_OUT })) };
}

const LEFT_OUT = '[older, left out]';

/** Tool calls as the model is told of them from then on: what it put into them was used as it was. */
export const recalled = (toolCalls: readonly ToolCall[]): readonly ToolCall[] =>
  toolCalls.map((toolCall) => ({ ...toolCall, args: clipped(toolCall.args, ARGUMENT_CHARACTERS) }));

/** What the model reads of a call: the result as JSON, a denial or an error as a sentence. */
export function resultText(reply: Exclude<CallReply, { effect: 'permit' | 'parked' }>): string {
  if (reply.effect === 'denied')
    return `denied: ${reply.reasons.map(({ code, message }) => `${code}: ${message}`).join('; ') || 'no reason given'}`;
  return JSON.stringify(clipped(reply.result));
}

function clipped(value: Json, characters = TEXT_CHARACTERS): Json {
  if (typeof value === 'string') {
    return value.length <= characters
      ? value
      : `${value.slice(0, characters).toWellFormed()}\n[… ${value.length - characters} more characters]`;
  }
  if (Array.isArray(value)) return value.map((item) => clipped(item, characters));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clipped(item, characters)]));
}
