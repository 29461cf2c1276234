import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '../../core/errors.ts';
import type { EngineName, PlacementName } from '../../core/run/types.ts';
import { placeFault } from '../config/place.ts';
import { scenarioFrom } from '../model/scenario-name.ts';
import { removeTree } from '../sandbox/remove-tree.ts';
import { resultFaults } from './check-results.ts';
import { describeEngine } from './engine-facts.ts';
import { figuresOf } from './figures.ts';
import { FloorMeter } from './floor-meter.ts';
import { describeMachine } from './machine.ts';
import { MeasuredPlacement } from './measured-placement.ts';
import type { PlacementRecord } from './record.ts';
import { renderReport } from './report.ts';
import { bundleRepository } from './repository.ts';
import type { CompareResults, EngineFacts, Machine, Unmeasured, WorkloadFacts } from './results.ts';

export interface CompareOptions {
  readonly engines: readonly EngineName[];
  readonly placements: readonly PlacementName[];
  /** Name of a shipped scenario, or a path. `survey` clones the repository around `directory` first. */
  readonly workload: string;
  /** Timed turns of each placement, from 1; `quick` makes it at most 3. */
  readonly turns: number;
  /** Users whose turns run at the same moment, from 1. */
  readonly concurrency: number;
  /** Directory for `index.html` and `results.json`; made when it does not exist. */
  readonly out?: string | undefined;
  /** Fewer turns, and no killed one: minutes become seconds, figures become rough. */
  readonly quick: boolean;
  /** Where the user's repository is; the working directory unless given. */
  readonly directory?: string | undefined;
  /** Configuration file whose policies and capacities apply; without one the defaults. */
  readonly configFile?: string | undefined;
  readonly signal: AbortSignal;
  /** One line of progress. */
  readonly log: (line: string) => void;
}

export interface CompareResult {
  readonly results: CompareResults;
  /** Files that were written. */
  readonly written: readonly string[];
  /** 1 when a turn did not complete, else 0. */
  readonly exitCode: 0 | 1;
}

/** Workloads that work on a git repository in `repo`. */
const REPOSITORY_WORKLOADS: readonly string[] = ['survey'];
const QUICK_TURNS = 3;

/**
 * Runs the same turns under each placement on each engine, interleaved (first turn of each, second turn of each, …) so that what else
 * happens on the machine meets all of them, and measures what each costs.
 *
 * @throws UsageError `invalid_argument`; PrerequisiteError when an engine or git is missing; whatever a kernel refused to start for
 */
export async function runCompare(options: CompareOptions): Promise<CompareResult> {
  checkOptions(options);
  if (options.out !== undefined) await makeOut(options.out);
  const turns = options.quick ? Math.min(options.turns, QUICK_TURNS) : options.turns;
  const workDir = await mkdtemp(join(tmpdir(), 'ow-cmp-'));
  try {
    const results = await measureAll({ ...options, turns }, workDir);
    const faults = resultFaults(results);
    if (faults.length > 0) throw new Error(`the results are not fit to be written:\n${faults.join('\n')}`);
    const written = options.out === undefined ? [] : await writeResults(options.out, results);
    return { results, written, exitCode: results.placements.every((placement) => placement.failed === 0) ? 0 : 1 };
  } finally {
    await removeTree(workDir);
  }
}

function checkOptions({ engines, placements, turns, concurrency }: CompareOptions): void {
  const refuse = (message: string): never => {
    throw new UsageError('invalid_argument', message);
  };
  if (engines.length === 0 || placements.length === 0) refuse('at least one engine and one placement are needed');
  if (!Number.isSafeInteger(turns) || turns < 1 || turns > 10_000) refuse('--turns must be a whole number from 1 to 10000');
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > 64)
    refuse('--concurrency must be a whole number from 1 to 64');
}

async function measureAll(options: CompareOptions, workDir: string): Promise<CompareResults> {
  const { log, signal } = options;
  const machine = await describeMachine(workDir);
  const engines = await Promise.all(options.engines.map(describeEngine));
  const bundle = REPOSITORY_WORKLOADS.includes(options.workload)
    ? await bundleRepository(options.directory ?? process.cwd(), workDir)
    : undefined;
  if (bundle !== undefined)
    log(`repository ${bundle.facts.name} at ${bundle.facts.commit}: ${bundle.facts.files} files, ${bundle.facts.bundleMiB} MiB`);
  const scenario = scenarioFrom(options.directory ?? process.cwd(), options.workload);
  await using stack = new AsyncDisposableStack();
  const floor = stack.use(await FloorMeter.open(workDir, options.engines));
  const sessions: MeasuredPlacement[] = [];
  for (const [index, seat] of everySeat(options).entries()) {
    signal.throwIfAborted();
    const directory = join(workDir, String(index));
    await mkdir(directory, { mode: 0o700 });
    log(`${seat.placement}/${seat.engine}: preparing`);
    const setup = { ...seat, directory, configFile: options.configFile, scenario, users: options.concurrency, signal };
    const session = stack.use(await MeasuredPlacement.open({ ...setup, bundle: bundle?.file, body: messageOf(options.workload) }));
    sessions.push(session);
  }
  await runRounds(options, sessions, floor);
  const records: PlacementRecord[] = [];
  for (const session of sessions) {
    signal.throwIfAborted();
    log(`${session.name}: memory${options.quick ? '' : ' and kill'}`);
    records.push(await session.finish({ kill: !options.quick }));
    await session.close();
  }
  const { name, concurrency, quick } = { name: options.workload, ...options };
  const workload = { name, turns: options.turns, concurrency, quick, repository: bundle?.facts ?? null };
  return await resultsOf({ machine, workload, engines, floor, records });
}

const messageOf = (workload: string): string => (workload === 'survey' ? 'Survey the repository in repo and report.' : 'Go.');

function everySeat(options: CompareOptions): readonly { readonly engine: EngineName; readonly placement: PlacementName }[] {
  return options.engines.flatMap((engine) => options.placements.map((placement) => ({ engine, placement })));
}

async function runRounds(options: CompareOptions, sessions: readonly MeasuredPlacement[], floor: FloorMeter): Promise<void> {
  for (let turn = 1; turn <= options.turns; turn += 1) {
    for (const session of sessions) {
      options.signal.throwIfAborted();
      const { samples } = await session.round();
      const ms = samples.map(
        (sample) => `${sample.ms.toFixed(0)} ms${sample.ended === 'completed' ? '' : ` (${sample.ended}: ${sample.detail})`}`,
      );
      options.log(`turn ${turn}/${options.turns}  ${session.name}  ${ms.join(', ')}`);
    }
    await floor.sample();
  }
}

async function resultsOf(seen: {
  readonly machine: Machine;
  readonly workload: WorkloadFacts;
  readonly engines: readonly EngineFacts[];
  readonly floor: FloorMeter;
  readonly records: readonly PlacementRecord[];
}): Promise<CompareResults> {
  const floor = seen.floor.parts();
  const made = [];
  for (const record of seen.records) made.push(await figuresOf(record, floor));
  const unmeasured: Unmeasured[] = [
    ...made.flatMap((figures) => figures.unmeasured),
    { field: 'newCli', why: 'this version has no credential recipes: a new program needs no file of ours, and gets no credential' },
    { field: 'attacks', why: 'attacks are run by `npm run test:matrix` (test/attack), not by compare' },
    ...seen.floor.unmeasured(),
  ];
  if (seen.workload.repository === null) unmeasured.push({ field: 'workload.repository', why: 'this workload needs no repository' });
  return {
    schema: 1,
    createdAt: new Date().toISOString(),
    machine: seen.machine,
    engines: seen.engines,
    workload: seen.workload,
    floor,
    unmeasured,
    placements: made.map((figures) => figures.result),
  };
}

/** Before anything is measured: minutes of work must not end in a folder that cannot be made. */
async function makeOut(directory: string): Promise<void> {
  const fault = placeFault(resolve(directory));
  if (fault !== undefined)
    throw new UsageError('invalid_argument', `--out ${directory}: ${fault}`, { hint: 'choose another with --out DIR' });
  await mkdir(directory, { recursive: true });
}

async function writeResults(directory: string, results: CompareResults): Promise<readonly string[]> {
  const files = { 'results.json': `${JSON.stringify(results, null, 2)}\n`, 'index.html': renderReport(results) };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return Object.keys(files).map((name) => join(directory, name));
}
