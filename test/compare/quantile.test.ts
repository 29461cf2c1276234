import { expect, test } from 'vitest';
import { axisFor } from '../../adapters/compare/axis.ts';
import { quantile, rounded } from '../../adapters/compare/quantile.ts';

test('a quantile lies between the two nearest ranks', () => {
  expect(quantile([], 0.5)).toBeUndefined();
  expect(quantile([7], 0.99)).toBe(7);
  expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  expect(quantile([10, 20, 30, 40, 50], 0.95)).toBe(48);
});

test('figures keep three digits and whole hundreds', () => {
  expect([0, 0.12345, 12.345, 123.45, 98_765.4].map(rounded)).toEqual([0, 0.123, 12.3, 123, 98_765]);
});

test('an axis starts at 0, holds the highest value, and has three to six round marks', () => {
  for (const highest of [0.3, 1, 7, 42, 99, 100, 244, 1001, 30_512]) {
    const { ticks, at } = axisFor(highest);
    expect(ticks[0]).toBe(0);
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(highest);
    expect(ticks.length).toBeGreaterThanOrEqual(3);
    expect(ticks.length).toBeLessThanOrEqual(6);
    expect(at(0)).toBe('0.00%');
  }
});
