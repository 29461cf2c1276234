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
  const found = SHOWN.map((label) => {
    const row = rows.find((one) => one.label === label);
    if (row === undefined) throw new Error(`the report has no row "${label}"; it has ${rows.map((one) => one.label).join(', ')}`);
    return [`${row.label}, ${row.unit}`, ...row.cells];
  });
  return [
    ...padded([['', ...sample.placements.map(({ placement }) => `\`${placement}\``)], ...found]),
    '',
    `${workload.turns} turns each on ${machine.cores} cores with ${Math.round(machine.memoryMiB / 1024)} GiB, ${machine.os}, ${sample.createdAt.slice(0, 10)}:`,
    '[the whole report](adapters/compare/sample/index.html).',
  ].join('\n');
}

/** A table as the formatter has it: the first column to the left, figures to the right. */
function padded(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(3, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [line(head), rule, ...body.map(line)];
}
