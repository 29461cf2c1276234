import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OutworkError, PolicyError } from '../../core/errors.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { admittedCapabilities } from './build.ts';
import { loadBundle } from './bundle.ts';
import { testCompiledCases } from './compiled-cases.ts';
import { ruleFaults } from './conventions.ts';
import { staleInputSchemas } from './input-schemas.ts';
import { findOpa, type OpaResult, runOpa } from './opa.ts';
import { verifyRelease } from './release.ts';
import { measureCoverage, type RuleTests, runRuleTests } from './rule-tests.ts';
import type { ServingSnapshot } from './serving-snapshot.ts';
import { loadSettings } from './settings.ts';
import { RULES_FOLDER, siteFolder } from './sources.ts';
import { withServing } from './with-serving.ts';

/** What is tested: a bundle root, and what the configuration adds to it. */
export interface PolicyPlace {
  readonly dir: string;
  readonly siteDir?: string | undefined;
  readonly publicKey?: string | undefined;
}

export interface PolicyTestReport {
  readonly tests: number;
  /** Percent of the rules' lines that a test reached; less than 100 is an error. */
  readonly coverage: number;
  /** Rows of the table that were put to the compiled rules as well. */
  readonly cases: number;
}

/** One gate and how it ended. */
export interface GateResult {
  readonly gate: string;
  readonly ok: boolean;
  /** What was seen, or the fault in the tool's own words. */
  readonly detail: string;
}

interface Bench extends RuleTests {
  readonly place: PolicyPlace;
  readonly folders: readonly string[];
  readonly report: { tests: number; coverage: number; cases: number };
  /** @throws PolicyError `policy_test_failed` */
  opaGate(...args: string[]): Promise<OpaResult>;
}

/**
 * Every gate of the rules, in the order in which a mistake is cheapest to read: format, types against the schemas and allowed built-ins,
 * conventions, contracts, data, tests, coverage, whether `dist/` was built from these rules, the table through the compiled rules, signature.
 *
 * @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_test_failed` with the tool's own words; PolicyError `policy_malformed`
 *   (data), `policy_stale` (dist) or `policy_unsigned`
 */
export async function testPolicy(dir: string, more: Omit<PolicyPlace, 'dir'> = {}): Promise<PolicyTestReport> {
  return withBench({ ...more, dir }, async (bench) => {
    for (const [, run] of GATES) await run(bench);
    return bench.report;
  });
}

/** As `testPolicy`, but every gate is tried and told. @throws PrerequisiteError `policy_tool_missing` */
export async function checkPolicy(place: PolicyPlace): Promise<readonly GateResult[]> {
  return withBench(place, async (bench) => {
    const results: GateResult[] = [];
    for (const [gate, run] of GATES) {
      try {
        results.push({ gate, ok: true, detail: await run(bench) });
      } catch (error) {
        if (!(error instanceof OutworkError)) throw error;
        results.push({ gate, ok: false, detail: error.message });
      }
    }
    return results;
  });
}

const GATES: readonly (readonly [string, (bench: Bench) => Promise<string>])[] = [
  [
    'format',
    async (bench) => {
      await bench.opaGate('fmt', '--list', '--fail', ...bench.folders);
      return 'opa fmt';
    },
  ],
  [
    'types and built-ins',
    async (bench) => {
      const capabilities = join(bench.work, 'capabilities.json');
      await writeFile(capabilities, await admittedCapabilities(bench.opa, bench.place.dir));
      await bench.opaGate('check', '--strict', '--schema', 'schemas', '--capabilities', capabilities, ...bench.folders);
      return 'strict, against the schemas, compiled built-ins only';
    },
  ],
  [
    'conventions',
    async ({ opa, place }) => {
      const faults = await ruleFaults(opa, place.dir, place.siteDir);
      if (faults.length > 0) throw failed('conventions', faults.join('\n'));
      return 'packages are folders, METADATA, no code twice';
    },
  ],
  [
    'contracts',
    async ({ place }) => {
      const stale = await staleInputSchemas(place.dir);
      if (stale.length > 0) throw failed('contracts', `schemas/input is not the kernel's: ${stale.join(', ')} (outwork policy build)`);
      return 'schemas/input are this kernel’s';
    },
  ],
  ['data', async ({ place }) => `version ${(await loadSettings(place.dir, place.siteDir)).version}`],
  [
    'tests',
    async (bench) => {
      bench.report.tests = await runRuleTests(bench);
      return `${bench.report.tests} passed`;
    },
  ],
  [
    'coverage',
    async (bench) => {
      bench.report.coverage = await measureCoverage(bench);
      return `${bench.report.coverage} %`;
    },
  ],
  [
    'dist',
    async ({ place }) => {
      const { snapshot } = await loadBundle(place.dir, place.siteDir);
      return `built from these rules; snapshot ${snapshot.slice(0, 12)}`;
    },
  ],
  [
    'compiled cases',
    async ({ place, report }) => {
      report.cases = await testOnDisk(place);
      return `${report.cases} rows agree`;
    },
  ],
  [
    'signature',
    async ({ place }) => {
      if (place.publicKey === undefined) return 'none wanted';
      await verifyRelease(await loadBundle(place.dir, place.siteDir), place.publicKey);
      return 'of the configured key';
    },
  ],
];

/** The table through the compiled rules that are on disk. @returns the number of rows @throws PolicyError as `testCompiledCases` */
const testOnDisk = async ({ dir, siteDir }: PolicyPlace): Promise<number> =>
  withServing(await loadBundle(dir, siteDir), ({ bundle, module }) => testCompiledCases(bundle, module, systemClock));

/**
 * The rules' own tests where OPA is installed, and the table through the compiled rules in any case.
 * @throws PolicyError `policy_test_failed`
 */
export async function testServing(serving: ServingSnapshot, { dir, siteDir }: PolicyPlace): Promise<void> {
  await testCompiledCases(serving.bundle, serving.module, systemClock);
  const opa = await findOpa().catch(() => undefined);
  if (opa === undefined) return;
  await withBench({ dir, siteDir }, runRuleTests);
}

async function withBench<T>(place: PolicyPlace, use: (bench: Bench) => Promise<T>): Promise<T> {
  const opa = await findOpa();
  const work = await mkdtemp(join(tmpdir(), 'outwork-policy-'));
  const { dir, siteDir } = place;
  try {
    const opaGate = async (...args: string[]): Promise<OpaResult> => {
      const result = await runOpa(opa, args, dir);
      if (result.code !== 0) throw failed(`opa ${args[0]}`, `${result.stdout}${result.stderr}`);
      return result;
    };
    const site = await siteFolder(dir, siteDir);
    const folders = site === undefined ? [RULES_FOLDER] : [RULES_FOLDER, site];
    return await use({ place, opa, work, folders, opaGate, report: { tests: 0, coverage: 0, cases: 0 } });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const failed = (gate: string, detail: string): PolicyError => new PolicyError('policy_test_failed', `${gate}: ${detail.trim()}`);
