import type { CallReply } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import type { ModelMessage, ModelReply, ToolCall } from '../../core/seams/model-gateway.ts';
import type { Harness, MembraneClient } from '../../core/wire/protocol.ts';
import { checkpointOf, freshState, type LoopState, recalled, restoreState, resultText } from './conversation.ts';
import { LOOP_TOOLS } from './tools.ts';

const MAX_STEPS = 64;
const MAX_TOOL_CALLS = 16;
/** The kernel admits so many in one request to a model. */
const MAX_MESSAGES = 512;

/** Call numbers of a step. Tool calls count on from `tools`; the final post takes the first number after them. */
const CALL = { checkpoint: 0, model: 1, tools: 2 } as const;

/** Errors after which the attempt has no say any more. Any other error of a tool call is a result that the model may read. */
const FATAL = [
  'stale_fence',
  'lease_lost',
  'unauthenticated',
  'nondeterministic',
  'in_flight',
  'effect_unknown',
  'budget_exhausted',
  'permit_unknown',
  'permit_expired',
  'guest_lost',
  'closed',
  'cancelled',
  'wire_version',
  'disk_full',
  'store_unavailable',
];

/**
 * The deterministic loop: model, tools, model, until a reply asks for no tool; that reply is posted.
 *
 * Every step begins with a checkpoint. An attempt that resumes repeats the interrupted step with the same keys and arguments, so the ledger
 * answers what was done and nothing is done twice. Only what is in the checkpoint decides what a step asks.
 */
export const scriptedHarness: Harness = async (client, signal) => {
  const checkpoint = await client.checkpoint();
  let state = checkpoint === undefined ? freshState(await client.context()) : restoreState(checkpoint);
  let waits = true;
  const caller: Caller = {
    async call(request) {
      const reply = await client.call(request);
      if (reply.effect === 'done' && reply.steering === true) waits = true;
      return reply;
    },
  };
  for (let resumed = true; state.step < MAX_STEPS; resumed = false) {
    if (waits) {
      const steering = await client.steer(state.seenSeq);
      if (steering.cancelled) return { kind: 'cancelled' };
      // The first step of an attempt takes no steering in: an earlier attempt may have asked the model without it.
      if (!resumed) state = steered(state, steering.messages);
      waits = resumed && steering.messages.length > 0;
    }
    if (signal.aborted) return { kind: 'cancelled' };
    if (state.messages.length > MAX_MESSAGES) return failed('context_full', `More than ${MAX_MESSAGES} messages`);
    const next = await takeStep(caller, state);
    if ('kind' in next) return next;
    state = next;
  }
  return failed('step_limit', `No end after ${MAX_STEPS} steps`);
};

/** What a step needs of the membrane. */
type Caller = Pick<MembraneClient, 'call'>;

function steered(state: LoopState, messages: readonly { readonly seq: number; readonly body: string }[]): LoopState {
  if (messages.length === 0) return state;
  const added = messages.map(({ body }): ModelMessage => ({ role: 'user', content: body }));
  return { ...state, seenSeq: Math.max(state.seenSeq, ...messages.map(({ seq }) => seq)), messages: [...state.messages, ...added] };
}

async function takeStep(client: Caller, before: LoopState): Promise<LoopState | ExitClaim> {
  const { state, checkpoint } = checkpointOf(before);
  const { step } = state;
  const saved = await client.call({ key: { step, call: CALL.checkpoint }, capability: 'checkpoint.save', args: { ...checkpoint } });
  if (saved.effect === 'parked') return { kind: 'parked' };

  const args = { messages: state.messages, tools: LOOP_TOOLS.map((tool) => tool.spec) } as unknown as Json;
  const asked = await client.call({ key: { step, call: CALL.model }, capability: 'model.generate', args });
  if (asked.effect === 'parked') return { kind: 'parked' };
  const reply = modelReply(asked);
  if ('kind' in reply) return reply;
  if (reply.toolCalls.length === 0) return post(client, step, reply.content);
  if (reply.toolCalls.length > MAX_TOOL_CALLS) return failed('too_many_tool_calls', `${reply.toolCalls.length} tool calls in one reply`);

  const results: ModelMessage[] = [];
  for (const [i, toolCall] of reply.toolCalls.entries()) {
    const result = await runTool(client, { step, call: CALL.tools + i }, toolCall);
    if (result === 'parked') return { kind: 'parked' };
    results.push({ role: 'tool', toolCallId: toolCall.id, content: result });
  }
  const assistant: ModelMessage = { role: 'assistant', content: reply.content, toolCalls: recalled(reply.toolCalls) };
  return { ...state, step: step + 1, messages: [...state.messages, assistant, ...results] };
}

function modelReply(reply: Exclude<CallReply, { effect: 'permit' | 'parked' }>): ModelReply | ExitClaim {
  if (reply.effect === 'denied') return failed('denied', resultText(reply));
  const { error, content, toolCalls } = reply.result as unknown as Partial<ModelReply> & { error?: { code: string; message: string } };
  if (error !== undefined) return failed(error.code, error.message);
  if (typeof content !== 'string' || !Array.isArray(toolCalls)) return failed('model_malformed', 'The model gave no reply');
  return { content, toolCalls, usage: { inputTokens: 0, outputTokens: 0 } };
}

async function runTool(client: Caller, key: { step: number; call: number }, { name, args }: ToolCall): Promise<string | 'parked'> {
  const tool = LOOP_TOOLS.find(({ spec }) => spec.name === name);
  if (tool === undefined) return `error: there is no tool ${name}`;
  try {
    const reply = await client.call({ key, capability: tool.capability, args });
    return reply.effect === 'parked' ? 'parked' : resultText(reply);
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    if (typeof code !== 'string' || FATAL.includes(code)) throw error;
    return `error: ${code}: ${message}`;
  }
}

async function post(client: Caller, step: number, content: string): Promise<ExitClaim> {
  const body = content === '' ? '(no text)' : content;
  const posted = await client.call({ key: { step, call: CALL.tools }, capability: 'message.post', args: { body } });
  if (posted.effect === 'parked') return { kind: 'parked' };
  if (posted.effect === 'denied') return failed('denied', resultText(posted));
  return { kind: 'completed' };
}

const failed = (code: string, message: string): ExitClaim => ({ kind: 'failed', code, message });
