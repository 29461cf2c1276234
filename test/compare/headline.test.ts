import { expect, test } from 'vitest';
import { headlineOf } from '../../adapters/compare/headline.ts';
import type { CompareResults, PlacementResult } from '../../adapters/compare/results.ts';
import { sampleResults } from './sample-results.ts';

const changed = (change: (result: PlacementResult) => Partial<PlacementResult>): CompareResults => {
  const sample = sampleResults();
  return { ...sample, placements: sample.placements.map((result) => ({ ...result, ...change(result) })) };
};

test('it names the fastest placement and how much longer the others took', () => {
  expect(headlineOf(sampleResults()).answer).toBe(
    'persistent-per-user answered fastest, in 36 ms at the median; host-loop-shell took 1.1 times as long (41 ms) and disposable-per-run took 4.8 times as long (171 ms).',
  );
});

test('a difference within noise is called none', () => {
  const close = changed((result) => ({ latencyMs: { p50: result.placement === 'host-loop-shell' ? 40 : 42, p95: 50, p99: 50 } }));
  expect(headlineOf(close).answer).toContain('persistent-per-user was about as fast (42 ms)');
});

test('it says nothing about what was not measured', () => {
  const silent = headlineOf(changed(() => ({ latencyMs: null, memoryMiB: null, killToResumeMs: null })));
  expect(silent.answer).toBe('No turn completed, so nothing can be said about speed.');
  expect(silent.details.join(' ')).not.toMatch(/MiB|kill|NaN/);
});

test('failed turns are never left unsaid', () => {
  expect(headlineOf(changed(() => ({ failed: 2 }))).details.at(-1)).toContain('host-loop-shell 2 of 10');
});

test('a machine that was busy with something else is named', () => {
  const sample = sampleResults();
  expect(headlineOf(sample).details.join(' ')).not.toContain('busy');
  expect(headlineOf({ ...sample, machine: { ...sample.machine, loadBefore: 3.5 } }).details.at(-1)).toContain('load 3.5 on 2 cores');
});
