import type { Json } from '../../core/json.ts';
import type { ModelMessage } from '../../core/seams/model-gateway.ts';

/** Id of the tool call `n` of a scripted step; results are found by it. */
export const toolCallId = (step: number, n: number): string => `call_${step}_${n}`;

const HOLE = /\{\{result\.(\d+)\.(\d+)\.([A-Za-z0-9_.]+)\}\}/g;
const FILL_CHARACTERS = 8 * 1024;
const HEAD_LINES = 10;
/** Stands where a result has no such field: a denied call, a failed one. */
const NOTHING = '(nothing)';

/** Fills `{{result.<step>.<n>.<field>}}` in every string of `value` from the tool messages of the conversation. */
export function fillTemplates(value: Json, messages: readonly ModelMessage[]): Json {
  if (typeof value === 'string')
    return value.replace(HOLE, (_, step, n, path) => lookUp(messages, toolCallId(Number(step), Number(n)), path));
  if (Array.isArray(value)) return value.map((item) => fillTemplates(item, messages));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillTemplates(item, messages)]));
}

function lookUp(messages: readonly ModelMessage[], id: string, path: string): string {
  const message = messages.findLast((candidate) => candidate.role === 'tool' && candidate.toolCallId === id);
  if (message === undefined) return NOTHING;
  let value: unknown = parsed(message.content);
  for (const part of path.split('.'))
    value = typeof value === 'string' ? view(value, part) : (value as Record<string, unknown> | null | undefined)?.[part];
  if (value === undefined || value === null || value === '') return NOTHING;
  return (typeof value === 'object' ? JSON.stringify(value) : String(value)).slice(0, FILL_CHARACTERS);
}

function view(text: string, part: string): string | undefined {
  const lines = text.split('\n').filter((line) => line !== '');
  if (part === 'lines') return String(lines.length);
  if (part === 'first') return lines[0];
  return part === 'head' ? lines.slice(0, HEAD_LINES).join('\n') : undefined;
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
