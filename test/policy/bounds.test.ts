import { describe, expect, test } from 'vitest';
import { inputFault } from '../../adapters/policy/bounds.ts';
import { SAFETY } from '../../core/limits.ts';

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const members = (count: number): unknown => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));

describe('an input is measured before it is written out', () => {
  test.each([
    ['nesting', nested(SAFETY.policyInputDepth), nested(SAFETY.policyInputDepth + 1)],
    ['elements of a list', Array(SAFETY.policyInputElements).fill(1), Array(SAFETY.policyInputElements + 1).fill(1)],
    ['members of an object', members(SAFETY.policyInputElements), members(SAFETY.policyInputElements + 1)],
    ['length of text', 'a'.repeat(SAFETY.policyInputBytes - 2), 'a'.repeat(SAFETY.policyInputBytes)],
    ['length of a key', { ['a'.repeat(1000)]: 1 }, { ['a'.repeat(SAFETY.policyInputBytes)]: 1 }],
    ['number', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER + 1],
    ['negative number', -Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER - 1],
    ['fraction', 0.1, Number.NaN],
    ['BL-129 1e400', 1e15, Number.parseFloat('1e400')],
    ['surrogates', '😀', '😀'.slice(0, 1)],
    ['surrogates in a key', { '😀': 1 }, { ['😀'.slice(1)]: 1 }],
    ['NUL', 'a\u0001', 'a\0'],
    ['type', { a: undefined }, { a: 1n }],
  ])('%s: the bound passes, what is beyond is refused', (_, within, beyond) => {
    expect(inputFault(within)).toBeUndefined();
    expect(inputFault(beyond)).toEqual(expect.any(String));
  });

  test('a wide and deep input is given up at the bound, not walked to its end', () => {
    let touched = 0;
    const row = new Proxy(Array(1000).fill(1), {
      get: (target, key) => {
        touched += 1;
        return Reflect.get(target, key);
      },
    });
    expect(inputFault(Array(1000).fill(row))).toContain('larger than');
    expect(touched).toBeLessThan(SAFETY.policyInputBytes * 3);
  });
});
