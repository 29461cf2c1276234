import { type Json, type JsonFault, jsonFault } from '../json.ts';
import { SAFETY } from '../limits.ts';

/** Why a value cannot be stored, or is endless: for arguments of a call, whatever its capability, and for what a run says of itself. */
export const storableFault = (value: Json): JsonFault | undefined =>
  jsonFault(value, { maxDepth: SAFETY.membraneDepth, maxElements: SAFETY.policyInputElements });

/**
 * Stands in a model's reply for arguments of a tool that hold a NUL or half a character. They cannot be stored as they are, and changed ones
 * would be another call: the call is refused instead.
 */
export const ILL_FORMED_ARGS = 'ill-formed text';
