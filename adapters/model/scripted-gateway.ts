import type { Json } from '../../core/json.ts';
import type { ModelGateway, ModelReply, ModelRequest } from '../../core/seams/model-gateway.ts';
import { readScenario, type Scenario } from './scenario.ts';
import { fillTemplates, toolCallId } from './scenario-template.ts';

/** A reply past the script's end. */
const PAST_THE_END = 'The script has no further step.';

/**
 * A model that says what a scenario says: equal requests get equal replies (G1), and nothing is contacted.
 *
 * @param scenario - name of a shipped one, or a path
 * @throws ConfigError `config_unreadable` `config_malformed`
 */
export function createScriptedGateway({ scenario }: { readonly scenario: string }): ModelGateway {
  const script = readScenario(scenario);
  return {
    async generate(request, _context, signal, onDelta) {
      signal.throwIfAborted();
      const reply = replyTo(script, request);
      onDelta?.(reply.content);
      return reply;
    },
  };
}

/**
 * The step is counted by replies that asked for tools: those of this run. Replies of earlier turns stand in a thread's context without.
 */
function replyTo(script: Scenario, request: ModelRequest): ModelReply {
  const step = request.messages.filter((message) => message.role === 'assistant' && (message.toolCalls?.length ?? 0) > 0).length;
  const { content, toolCalls } = script.steps[step] ?? { content: PAST_THE_END, toolCalls: [] };
  const fill = <T extends Json>(value: T): T => fillTemplates(value, request.messages) as T;
  const reply = {
    content: fill(content),
    toolCalls: toolCalls.map(({ name, args }, n) => ({ id: toolCallId(step, n), name, args: fill(args) })),
  };
  return { ...reply, usage: { inputTokens: tokens(request.messages), outputTokens: tokens(reply) } };
}

/** Crude, but the same every time: four characters a token. */
const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);
