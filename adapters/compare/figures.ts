import { DESCRIPTORS, enforcerOf } from '../../core/capability/descriptors.ts';
import { CAPABILITIES, type CapabilityName, type Enforcer } from '../../core/capability/types.ts';
import type { MeasureSnapshot } from '../../core/measure.ts';
import type { PlacementName } from '../../core/run/types.ts';
import { OPERATIONS } from '../../core/wire/protocol.ts';
import { countCode } from './code-size.ts';
import { deploymentOf } from './deployment.ts';
import { quantile, rounded } from './quantile.ts';
import type { PlacementRecord } from './record.ts';
import { type FloorParts, type PlacementResult, placementLabel, type TurnPoint, type Unmeasured } from './results.ts';
import type { TurnSample } from './turn.ts';

const MiB = 1024 * 1024;

interface TimedTurn {
  readonly sample: TurnSample;
  readonly point: TurnPoint;
  readonly overheadMs: number;
  readonly floorMs: number | undefined;
}

/** Makes the figures of one placement of its record, and says which could not be made. */
export async function figuresOf(
  record: PlacementRecord,
  floor: FloorParts,
): Promise<{ readonly result: PlacementResult; readonly unmeasured: readonly Unmeasured[] }> {
  const turns = timedTurns(record, floor);
  const completed = turns.filter((turn) => turn.point.completed);
  const every = [
    record.first,
    ...turns.map((turn) => turn.sample),
    record.watched.sample,
    ...(record.kill.sample ? [record.kill.sample] : []),
  ];
  const cold = coldStarts(record);
  const result: PlacementResult = {
    placement: record.placement,
    engine: record.engine,
    turns: turns.length,
    failed: turns.length - completed.length,
    latencyMs: quantiles(completed.map((turn) => turn.point.ms)),
    coldStartMs: median(cold),
    overheadMs: overheadOf(completed.map((turn) => turn.overheadMs)),
    floorMs: median(completed.flatMap((turn) => turn.floorMs ?? [])),
    shellMs: median(completed.flatMap((turn) => turn.sample.shellMs)),
    ...usageOf(record),
    calls: callsOf(record, turns.length),
    killToResumeMs: record.kill.kind === 'resumed' ? { p50: rounded(record.kill.ms) } : null,
    duplicates: every.reduce((sum, turn) => sum + Math.max(0, turn.replies - 1), 0),
    lost: every.filter((turn) => turn.ended === 'completed' && turn.replies === 0).length,
    protocol: { operations: operationsOf(record.placement) },
    code: await countCode(record.placement),
    deployment: deploymentOf(record),
    newCli: null,
    enforcement: enforcementOf(record.placement),
    attacks: null,
    samples: turns.map((turn) => turn.point),
  };
  return { result, unmeasured: reasons(record, result) };
}

function timedTurns(record: PlacementRecord, floor: FloorParts): readonly TimedTurn[] {
  const seen = new Set(record.first.sandboxes);
  let number = 0;
  return record.rounds.flatMap(({ samples, before, after }) => {
    const share = 1 / samples.length;
    const modelMs = (after.model.wallMs - before.model.wallMs) * share;
    return samples.map((sample) => {
      number += 1;
      const cold = sample.sandboxes.some((sandbox) => !seen.has(sandbox));
      for (const sandbox of sample.sandboxes) seen.add(sandbox);
      return {
        sample,
        point: { turn: number, ms: rounded(sample.ms), cold, completed: sample.ended === 'completed' },
        overheadMs: sample.ms - sample.commandMs - modelMs,
        floorMs: turnFloor(before, after, share, cold, floor),
      };
    });
  });
}

/** Commits × commit + round trips × round trip + a bare start where cold. A control message is half a round trip: its answer is a request. */
function turnFloor(before: MeasureSnapshot, after: MeasureSnapshot, share: number, cold: boolean, floor: FloorParts): number | undefined {
  if (floor.commitMs === null || floor.roundTripMs === null || (cold && floor.bareStartMs === null)) return undefined;
  const commits = (after.commits - before.commits) * share;
  const trips = (after.membrane.requests - before.membrane.requests) * share;
  const messages = (after.membrane.hostToSandbox - before.membrane.hostToSandbox) * share;
  return commits * floor.commitMs + (trips + messages / 2) * floor.roundTripMs + (cold ? (floor.bareStartMs ?? 0) : 0);
}

function coldStarts(record: PlacementRecord): readonly number[] {
  const seen = new Set<string>();
  const starts: number[] = [];
  for (const turn of [record.first, ...record.rounds.flatMap((round) => round.samples)]) {
    if (turn.seatMs !== undefined && turn.sandboxes.some((sandbox) => !seen.has(sandbox))) starts.push(turn.seatMs);
    for (const sandbox of turn.sandboxes) seen.add(sandbox);
  }
  return starts;
}

function usageOf({
  watched: { idle, active },
}: PlacementRecord): Pick<PlacementResult, 'memoryMiB' | 'memoryPartsMiB' | 'processes' | 'connections'> {
  const mib = (bytes: number): number => Number((bytes / MiB).toFixed(1));
  return {
    memoryMiB: { idle: mib(idle.kernelBytes + idle.sandboxBytes), active: mib(active.kernelBytes + active.sandboxBytes) },
    memoryPartsMiB: {
      kernel: { idle: mib(idle.kernelBytes), active: mib(active.kernelBytes) },
      sandbox: { idle: mib(idle.sandboxBytes), active: mib(active.sandboxBytes) },
    },
    processes: { idle: idle.processes, active: active.processes },
    connections: { idle: idle.connections, active: active.connections },
  };
}

function callsOf(record: PlacementRecord, turns: number): PlacementResult['calls'] {
  if (turns === 0) return null;
  const perTurn = (read: (snapshot: MeasureSnapshot) => number): number =>
    rounded(record.rounds.reduce((sum, { before, after }) => sum + read(after) - read(before), 0) / turns);
  return {
    membranePerTurn: perTurn((snapshot) => snapshot.membrane.requests),
    hostToSandboxPerTurn: perTurn((snapshot) => snapshot.membrane.hostToSandbox),
    bytesPerTurn: Math.round(perTurn((snapshot) => snapshot.membrane.bytes)),
    commitsPerTurn: perTurn((snapshot) => snapshot.commits),
  };
}

/** A host loop needs the guest's own channel only; a sandboxed executor also all that a run token admits. */
function operationsOf(placement: PlacementName): number {
  return Object.values(OPERATIONS).filter((operation) => operation.token === 'sandbox' || placement !== 'host-loop-shell').length;
}

function enforcementOf(placement: PlacementName): Readonly<Record<CapabilityName, Enforcer>> {
  return Object.fromEntries(CAPABILITIES.map((name) => [name, enforcerOf(DESCRIPTORS[name], placement)])) as Record<
    CapabilityName,
    Enforcer
  >;
}

function quantiles(values: readonly number[]): PlacementResult['latencyMs'] {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((q) => quantile(values, q));
  return p50 === undefined || p95 === undefined || p99 === undefined ? null : { p50: rounded(p50), p95: rounded(p95), p99: rounded(p99) };
}

function overheadOf(values: readonly number[]): PlacementResult['overheadMs'] {
  const all = quantiles(values);
  return all === null ? null : { p50: all.p50, p95: all.p95 };
}

function median(values: readonly number[]): { readonly p50: number } | null {
  const p50 = quantile(values, 0.5);
  return p50 === undefined ? null : { p50: rounded(p50) };
}

function reasons(record: PlacementRecord, result: PlacementResult): readonly Unmeasured[] {
  const noTurn = 'no turn completed';
  const why: Partial<Record<keyof PlacementResult, string>> = {
    latencyMs: noTurn,
    overheadMs: noTurn,
    floorMs: result.latencyMs === null ? noTurn : 'a bare operation of the floor could not be measured',
    shellMs: result.latencyMs === null ? noTurn : 'the workload runs no command',
    calls: noTurn,
    coldStartMs: 'the event log of the first attempt has no claim and seat',
    killToResumeMs: record.kill.kind === 'none' ? record.kill.why : '',
    code: 'the source files are not part of this installation',
  };
  return Object.entries(why).flatMap(([figure, reason]) =>
    result[figure as keyof PlacementResult] === null ? [{ field: `${placementLabel(result)}.${figure}`, why: reason }] : [],
  );
}
