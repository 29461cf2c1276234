import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCompare } from '../../adapters/compare/main.ts';
import { MeasuredPlacement } from '../../adapters/compare/measured-placement.ts';
import { quantile, rounded } from '../../adapters/compare/quantile.ts';
import type { PlacementResult } from '../../adapters/compare/results.ts';
import type { Figure } from './figure.ts';

const TURNS = 10;
const COMMANDS = 16;
const COMMAND_ROUNDS = 8;
const COMMAND_TARGET_MS = 5;
const OVERHEAD_TARGET = 2.5;
const COLD_TARGET = 1.6;
const IDLE_TARGET_MIB = 60;

/** Whole turns through real kernels and sandboxes: warm, cold and idle. */
export async function benchTurn(): Promise<Figure[]> {
  const { results } = await runCompare({
    ...{ engines: ['bubblewrap'], placements: ['disposable-per-run', 'persistent-per-user'], workload: 'survey' },
    ...{ turns: TURNS, concurrency: 1, quick: false, signal: new AbortController().signal, log: () => {} },
  });
  const [disposable, persistent] = results.placements;
  if (disposable === undefined || persistent === undefined) throw new Error('a placement was not measured');
  return [warm(persistent), cold(disposable, results.floor.bareStartMs), idle(persistent), await commandFigure()];
}

function warm({ overheadMs, floorMs }: PlacementResult): Figure {
  if (overheadMs === null || floorMs === null) throw new Error('no turn of persistent-per-user completed');
  const ratio = overheadMs.p50 / floorMs.p50;
  const target = `≤ ${OVERHEAD_TARGET} × floor`;
  return {
    id: 'turn.persistentOverheadMs.p50',
    target,
    measured: overheadMs.p50,
    baseline: floorMs.p50,
    ratio: rounded(ratio),
    met: ratio <= OVERHEAD_TARGET,
  };
}

function cold({ coldStartMs }: PlacementResult, bareStartMs: number | null): Figure {
  if (coldStartMs === null || bareStartMs === null) throw new Error('no cold start of disposable-per-run was measured');
  const ratio = coldStartMs.p50 / bareStartMs;
  const target = `≤ ${COLD_TARGET} × unshare + bwrap + node -e 0`;
  return {
    id: 'turn.disposableSeatMs.p50',
    target,
    measured: coldStartMs.p50,
    baseline: bareStartMs,
    ratio: rounded(ratio),
    met: ratio <= COLD_TARGET,
  };
}

function idle({ memoryPartsMiB }: PlacementResult): Figure {
  if (memoryPartsMiB === null) throw new Error('no memory of persistent-per-user was measured');
  const measured = memoryPartsMiB.sandbox.idle;
  return {
    id: 'turn.idleUserMiB',
    target: `≤ ${IDLE_TARGET_MIB} MiB unique`,
    measured,
    baseline: null,
    ratio: null,
    met: measured <= IDLE_TARGET_MIB,
  };
}

/**
 * What one local command adds to a turn, permit and records included: a turn with many commands in one step less a turn with none, divided
 * by their number. The baseline is a bare spawn of the same program.
 */
async function commandFigure(): Promise<Figure> {
  const directory = await mkdtemp(join(tmpdir(), 'ow-bench-'));
  try {
    const bare: number[] = [];
    for (let count = 0; count < 100; count += 1) bare.push(await bareSpawnMs());
    const none = await turnTimes(directory, 0);
    const many = await turnTimes(directory, COMMANDS);
    const measured = ((quantile(many, 0.5) ?? Number.NaN) - (quantile(none, 0.5) ?? Number.NaN)) / COMMANDS;
    const baseline = quantile(bare, 0.5) ?? Number.NaN;
    return {
      id: 'turn.localCommandMs.p50',
      target: `≤ ${COMMAND_TARGET_MS} ms over a bare spawn, permit included`,
      measured: rounded(measured),
      baseline: rounded(baseline),
      ratio: rounded(measured / baseline),
      met: measured - baseline <= COMMAND_TARGET_MS,
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function turnTimes(parent: string, commands: number): Promise<readonly number[]> {
  const directory = join(parent, String(commands));
  await mkdir(directory, { mode: 0o700 });
  const scenario = join(directory, 'commands.json');
  const toolCalls = Array.from({ length: commands }, () => ({ name: 'shell', args: { argv: ['true'] } }));
  const steps = [...(commands === 0 ? [] : [{ content: 'Working.', toolCalls }]), { content: 'Done.', toolCalls: [] }];
  await writeFile(scenario, JSON.stringify({ name: 'commands', description: 'Many commands in one step.', steps }));
  await using placement = await MeasuredPlacement.open({
    ...{ placement: 'persistent-per-user', engine: 'bubblewrap', directory, configFile: undefined, scenario, users: 1 },
    ...{ bundle: undefined, body: 'Go.', signal: new AbortController().signal },
  });
  const times: number[] = [];
  for (let round = 0; round < COMMAND_ROUNDS; round += 1) {
    const { samples } = await placement.round();
    for (const sample of samples) {
      if (sample.ended !== 'completed') throw new Error(`a turn of the bench ${sample.ended}: ${sample.detail}`);
      times.push(sample.ms);
    }
  }
  return times;
}

async function bareSpawnMs(): Promise<number> {
  const startedAt = performance.now();
  await once(spawn('/bin/true', { stdio: ['ignore', 'pipe', 'pipe'], env: {} }), 'close');
  return performance.now() - startedAt;
}
