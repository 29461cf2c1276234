import { describe, expect, it } from 'vitest';
import { resultFaults } from '../../adapters/compare/check-results.ts';
import { renderReport } from '../../adapters/compare/report.ts';
import { readSample, SAMPLE_REPORT, withSample } from './sample.ts';
import { read } from './sources.ts';

describe('the committed sample report', () => {
  it('has the form that compare promises, every turn in it completed, and nothing was lost or doubled', () => {
    const sample = readSample();
    expect(resultFaults(sample)).toEqual([]);
    expect(sample.placements.map(({ placement }) => placement)).toEqual(['host-loop-shell', 'disposable-per-run', 'persistent-per-user']);
    for (const { failed, lost, duplicates } of sample.placements)
      expect({ failed, lost, duplicates }).toEqual({ failed: 0, lost: 0, duplicates: 0 });
  });

  it('is drawn as the code draws it today; `npm run docs` does it again', () => {
    expect(read(SAMPLE_REPORT)).toBe(renderReport(readSample()));
  });

  it('gives the figures that README shows; `npm run docs` writes them', () => {
    expect(read('README.md')).toBe(withSample(read('README.md')));
  });

  it('control: other figures would show', () => {
    const sample = readSample();
    const [first, ...others] = sample.placements;
    if (first?.latencyMs == null) throw new Error('the sample has figures');
    const changed = { ...sample, placements: [{ ...first, latencyMs: { ...first.latencyMs, p50: 98_765 } }, ...others] };
    expect(withSample(read('README.md'), changed)).not.toBe(read('README.md'));
  });
});
