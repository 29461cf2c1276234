import { MembraneError } from '../../core/errors.ts';
import { type Json, jsonFault } from '../../core/json.ts';
import { SAFETY } from '../../core/limits.ts';

/**
 * Refuses what would go into the event log and cannot: NUL, lone surrogates, endless arrays. Arguments of calls are not judged here but by
 * the call pipeline, which answers a loop in the kernel process and one in a sandbox alike; outputs of commands are cleaned there.
 *
 * @throws MembraneError `malformed`
 */
export function requireStorableText(value: Json): void {
  const fault = jsonFault(value, { maxDepth: SAFETY.membraneDepth, maxElements: SAFETY.policyInputElements });
  if (fault !== undefined) throw new MembraneError('malformed', `the body cannot be stored: ${fault}`);
}
