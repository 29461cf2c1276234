import { StoreError } from '../../core/errors.ts';
import { jsonFault } from '../../core/json.ts';

/** Wider than the membrane's bound, so that what it admits is storable with the store's own wrapping around it. */
const BOUNDS = { maxDepth: 128, maxElements: Number.POSITIVE_INFINITY };

/** False when a database would change or reject this text or value; such an id can name nothing that is stored. */
export const isStorable = (value: unknown): boolean => jsonFault(value, BOUNDS) === undefined;

/**
 * S9. Checks every string, key and number inside `value` before any of it is written.
 * @throws StoreError `text_unstorable`
 */
export function requireStorable(value: unknown): void {
  const fault = jsonFault(value, BOUNDS);
  if (fault !== undefined) throw new StoreError('text_unstorable', `The value cannot be stored unchanged (${fault})`);
}
