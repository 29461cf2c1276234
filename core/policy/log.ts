import { evidenceJson } from '../capability/redact.ts';
import type { Json } from '../json.ts';
import type { PolicyInput } from './types.ts';

/**
 * What the decision log keeps of a question beside its digest: by default the question itself, with live secrets and what looks like a
 * credential replaced.
 */
export function loggedInput(
  deps: { readonly logInput?: 'digest' | 'redacted' },
  input: PolicyInput,
  secrets: readonly string[],
): { readonly input?: PolicyInput } {
  if (deps.logInput === 'digest') return {};
  return { input: evidenceJson(input as unknown as Json, secrets) as unknown as PolicyInput };
}
