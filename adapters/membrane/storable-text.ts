import { storableFault } from '../../core/capability/arguments.ts';
import { MembraneError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';

/**
 * Refuses what would go into the event log and cannot: NUL, lone surrogates, endless arrays. Arguments of calls are not judged here but by
 * the call pipeline, which answers a loop in the kernel process and one in a sandbox alike; outputs of commands are cleaned there.
 *
 * @throws MembraneError `malformed`
 */
export function requireStorableText(value: Json): void {
  const fault = storableFault(value);
  if (fault !== undefined) throw new MembraneError('malformed', `the body cannot be stored: ${fault}`);
}
