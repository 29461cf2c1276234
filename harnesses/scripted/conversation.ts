import type { CallReply } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { ModelMessage } from '../../core/seams/model-gateway.ts';
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

/** The state as a checkpoint, and the state that goes with it: the oldest tool results are left out when all would be too much. */
export function checkpointOf(state: LoopState): { state: LoopState; checkpoint: CheckpointBody } {
  let messages = state.messages;
  for (;;) {
    const kept = { ...state, messages };
    const body = JSON.stringify(kept);
    const oldest = messages.findIndex((message) => message.role === 'tool' && message.content !== LEFT_OUT);
    if (oldest === -1 || Buffer.byteLength(JSON.stringify(body)) <= CHECKPOINT_BYTES) {
      return { state: kept, checkpoint: { schema: SCHEMA, version: VERSION, body } };
    }
    messages = messages.with(oldest, { ...(messages[oldest] as Extract<ModelMessage, { role: 'tool' }>), content: LEFT_OUT });
  }
}

const LEFT_OUT = '[an older result, left out]';

/** What the model reads of a call: the result as JSON, a denial or an error as a sentence. */
export function resultText(reply: Exclude<CallReply, { effect: 'permit' | 'parked' }>): string {
  if (reply.effect === 'denied')
    return `denied: ${reply.reasons.map(({ code, message }) => `${code}: ${message}`).join('; ') || 'no reason given'}`;
  return JSON.stringify(clipped(reply.result));
}

function clipped(value: Json): Json {
  if (typeof value === 'string') {
    return value.length <= TEXT_CHARACTERS
      ? value
      : `${value.slice(0, TEXT_CHARACTERS).toWellFormed()}\n[… ${value.length - TEXT_CHARACTERS} more characters]`;
  }
  if (Array.isArray(value)) return value.map(clipped);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clipped(item)]));
}
