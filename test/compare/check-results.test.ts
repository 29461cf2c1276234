import { expect, test } from 'vitest';
import { resultFaults } from '../../adapters/compare/check-results.ts';
import { sampleResults } from './sample-results.ts';

const withFirst = (change: object) => {
  const sample = sampleResults();
  const [first, ...others] = sample.placements;
  return { ...sample, placements: [{ ...first, ...change }, ...others] } as typeof sample;
};

test('the sample is fit to be written', () => {
  expect(resultFaults(sampleResults())).toEqual([]);
});

test('a null that is not named in unmeasured is a fault', () => {
  expect(resultFaults(withFirst({ shellMs: null }))).toEqual(['host-loop-shell/bubblewrap.shellMs: null, but not in unmeasured']);
});

test('a reason for what was measured is a fault', () => {
  const sample = sampleResults();
  const unmeasured = [...sample.unmeasured, { field: 'calls', why: 'forgotten' }];
  expect(resultFaults({ ...sample, unmeasured })).toEqual(['calls: in unmeasured, but nothing is null there']);
});

test('an unknown key, a negative time and an unknown enforcer are faults of the schema', () => {
  expect(resultFaults(withFirst({ extra: 1 }))).toHaveLength(1);
  expect(resultFaults(withFirst({ shellMs: { p50: -1 } }))).toHaveLength(1);
  expect(resultFaults(withFirst({ enforcement: { 'shell.exec': 'hope' } }))).toHaveLength(1);
});
