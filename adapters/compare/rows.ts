import { rounded } from './quantile.ts';
import type { CompareResults, PlacementResult } from './results.ts';

/** One line of the table: a figure over all placements. The same lines go to terminal and report. */
export interface Row {
  readonly label: string;
  /** Unit, or empty for a count. */
  readonly unit: string;
  readonly group: 'speed' | 'size' | 'traffic' | 'safety' | 'cost';
  /** `—` where it was not measured. */
  readonly cells: readonly string[];
}

export const NOT_MEASURED = '—';

type Read = (result: PlacementResult) => number | string | undefined;

const ROWS: readonly (Omit<Row, 'cells'> & { readonly read: Read })[] = [
  { label: 'turn p50', unit: 'ms', group: 'speed', read: (result) => result.latencyMs?.p50 },
  { label: 'turn p95', unit: 'ms', group: 'speed', read: (result) => result.latencyMs?.p95 },
  { label: 'turn p99', unit: 'ms', group: 'speed', read: (result) => result.latencyMs?.p99 },
  { label: 'overhead p50', unit: 'ms', group: 'speed', read: (result) => result.overheadMs?.p50 },
  { label: 'floor p50', unit: 'ms', group: 'speed', read: (result) => result.floorMs?.p50 },
  { label: 'command p50', unit: 'ms', group: 'speed', read: (result) => result.shellMs?.p50 },
  { label: 'cold start p50', unit: 'ms', group: 'speed', read: (result) => result.coldStartMs?.p50 },
  { label: 'kill to resume', unit: 'ms', group: 'speed', read: (result) => result.killToResumeMs?.p50 },
  { label: 'memory idle', unit: 'MiB', group: 'size', read: (result) => result.memoryMiB?.idle },
  { label: 'memory active', unit: 'MiB', group: 'size', read: (result) => result.memoryMiB?.active },
  { label: 'processes idle/active', unit: '', group: 'size', read: (result) => pair(result.processes) },
  { label: 'connections idle/active', unit: '', group: 'size', read: (result) => pair(result.connections) },
  { label: 'membrane requests', unit: 'per turn', group: 'traffic', read: (result) => result.calls?.membranePerTurn },
  { label: 'messages to sandbox', unit: 'per turn', group: 'traffic', read: (result) => result.calls?.hostToSandboxPerTurn },
  { label: 'membrane traffic', unit: 'KiB per turn', group: 'traffic', read: (result) => kib(result.calls?.bytesPerTurn) },
  { label: 'commits', unit: 'per turn', group: 'traffic', read: (result) => result.calls?.commitsPerTurn },
  { label: 'turns failed', unit: '', group: 'safety', read: (result) => `${result.failed} of ${result.turns}` },
  { label: 'replies doubled', unit: '', group: 'safety', read: (result) => result.duplicates ?? undefined },
  { label: 'replies lost', unit: '', group: 'safety', read: (result) => result.lost ?? undefined },
  { label: 'deny of a command', unit: 'enforced by', group: 'safety', read: (result) => result.enforcement['shell.exec'] },
  {
    label: 'attacks stopped',
    unit: '',
    group: 'safety',
    read: (result) => (result.attacks && `${result.attacks.stopped} of ${result.attacks.total}`) || undefined,
  },
  { label: 'wire operations', unit: '', group: 'cost', read: (result) => result.protocol?.operations },
  { label: 'code of its own', unit: 'lines', group: 'cost', read: (result) => result.code?.lines },
  { label: 'a new CLI', unit: 'lines', group: 'cost', read: (result) => result.newCli?.lines },
  {
    label: 'daemons, images',
    unit: '',
    group: 'cost',
    read: (result) => (result.deployment && `${result.deployment.daemons}, ${result.deployment.images}`) || undefined,
  },
  { label: 'kernel disk', unit: 'MiB', group: 'cost', read: (result) => result.deployment?.diskMiB },
];

export const rowsOf = (results: CompareResults): readonly Row[] =>
  ROWS.map(({ read, ...row }) => ({ ...row, cells: results.placements.map((result) => cell(read(result))) }));

function cell(value: number | string | undefined): string {
  if (value === undefined) return NOT_MEASURED;
  if (typeof value === 'string') return value;
  return value >= 10_000 ? value.toLocaleString('en-US', { maximumFractionDigits: 0 }) : String(rounded(value));
}

const pair = (value: { idle: number; active: number } | null): string | undefined =>
  value === null ? undefined : `${value.idle} / ${value.active}`;
const kib = (bytes: number | undefined): number | undefined => (bytes === undefined ? undefined : Number((bytes / 1024).toFixed(1)));
