import type { CompareResults } from '../../adapters/compare/results.ts';
import { rowsOf } from '../../adapters/compare/rows.ts';
import { read } from './sources.ts';

export const SAMPLE_RESULTS = 'adapters/compare/sample/results.json';
export const SAMPLE_REPORT = 'adapters/compare/sample/index.html';

const BEGIN = '<!-- sample: begin -->';
const END = '<!-- sample: end -->';

export const readSample = (): CompareResults => JSON.parse(read(SAMPLE_RESULTS)) as CompareResults;

/** Rows of the report that README shows, by their names there. */
const SHOWN: readonly string[] = [
  'turn p50',
  'turn p95',
  'cold start p50',
  'overhead p50',
  'memory idle',
  'memory active',
  'kill to resume',
];

/** README with the figures of the committed sample between its marks. @throws Error when it has no marks or the report has no such row */
export function withSample(readme: string, sample: CompareResults = readSample()): string {
  const start = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (start === -1 || end < start) throw new Error('README has no place for the sample');
  return `${readme.slice(0, start + BEGIN.length)}\n\n${sampleTable(sample)}\n\n${readme.slice(end)}`;
}

function sampleTable(sample: CompareResults): string {
  const rows = rowsOf(sample);
  const { machine, workload } = sample;
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const found = SHOWN.map((label) => {
    const row = rows.find((one) => one.label === label);
    if (row === undefined) throw new Error(`the report has no row "${label}"; it has ${rows.map((one) => one.label).join(', ')}`);
    return line([`${row.label}, ${row.unit}`, ...row.cells]);
  });
  return [
    line(['', ...sample.placements.map(({ placement }) => `\`${placement}\``)]),
    line(['---', ...sample.placements.map(() => '---:')]),
    ...found,
    '',
    `${workload.turns} turns each on ${machine.cores} cores with ${Math.round(machine.memoryMiB / 1024)} GiB, ${machine.os}, ${sample.createdAt.slice(0, 10)}:`,
    '[the whole report](adapters/compare/sample/index.html).',
  ].join('\n');
}
