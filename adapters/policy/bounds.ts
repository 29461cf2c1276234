import { SAFETY } from '../../core/limits.ts';

/**
 * Why an input may not be shown to policy, or undefined. Looks at no more of it than the bounds allow, so it can be asked before the
 * input is written out. Numbers beyond the safe integers are refused: engines disagree about them (ids and times are strings).
 */
export function inputFault(input: unknown): string | undefined {
  // Every value takes at least two bytes of JSON with its separator; every UTF-16 unit at least one.
  let bytes = 0;
  const visit = (value: unknown, depth: number): string | undefined => {
    bytes += 2;
    if (bytes > SAFETY.policyInputBytes) return TOO_LARGE;
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number')
      return Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? undefined : 'a number is out of range';
    if (value === null || typeof value === 'boolean' || value === undefined) return undefined;
    if (typeof value !== 'object') return 'a value is not JSON';
    if (depth >= SAFETY.policyInputDepth) return `nesting is deeper than ${SAFETY.policyInputDepth}`;
    if (Array.isArray(value)) {
      if (value.length > SAFETY.policyInputElements) return TOO_MANY;
      for (const item of value) {
        const fault = visit(item, depth + 1);
        if (fault !== undefined) return fault;
      }
      return undefined;
    }
    let members = 0;
    for (const key in value) {
      members += 1;
      if (members > SAFETY.policyInputElements) return TOO_MANY;
      const fault = text(key) ?? visit((value as Record<string, unknown>)[key], depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
  const text = (value: string): string | undefined => {
    bytes += value.length;
    if (bytes > SAFETY.policyInputBytes) return TOO_LARGE;
    return value.isWellFormed() && !value.includes('\0') ? undefined : 'text is not well formed';
  };
  return visit(input, 0);
}

/** The same of the text that rules would read. */
export const textFault = (text: string): string | undefined => (Buffer.byteLength(text) > SAFETY.policyInputBytes ? TOO_LARGE : undefined);

const TOO_LARGE = `the input is larger than ${SAFETY.policyInputBytes} bytes`;
const TOO_MANY = `a list or an object has more than ${SAFETY.policyInputElements} elements`;
