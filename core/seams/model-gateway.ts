import type { Json } from '../json.ts';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Json;
}

export type ModelMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string };

export interface ModelRequest {
  readonly messages: readonly ModelMessage[];
  readonly tools?: readonly { readonly name: string; readonly description: string; readonly parameters: Json }[];
}

export interface ModelReply {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage: {
    readonly inputTokens: number;
    readonly outputTokens: number;
    /** What it cost, in millionths of the unit that the gateway's prices are in; absent when it has no prices. */
    readonly costMicros?: number;
  };
}

/**
 * The one way to a model. Keys stay behind it.
 *
 * - G1 equal (run, step) and equal request give the same reply when the adapter says it is deterministic.
 * - G2 an abort ends the upstream request.
 */
export interface ModelGateway {
  generate(
    request: ModelRequest,
    context: { readonly run: string; readonly step: number },
    signal: AbortSignal,
    /** Sees the reply's text as it arrives; an adapter that cannot stream never calls it. */
    onDelta?: (text: string) => void,
  ): Promise<ModelReply>;
}
