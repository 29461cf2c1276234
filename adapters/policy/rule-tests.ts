import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { loadCases } from './cases.ts';
import { type OpaResult, runOpa } from './opa.ts';
import { loadSettings } from './settings.ts';
import { RULES_FOLDER, siteFolder } from './sources.ts';

/** The table is one test to OPA, and its own patience of five seconds a test is short on a machine that does other things too. */
const PATIENCE = ['--timeout', '60s'];

/** Tests of a site, and the rows of its table, by the name that OPA gives a test. */
const TESTS_OF_A_SITE = String.raw`^data\.(site\.|outwork_test\.test_cases$)`;

/** Faults beyond these are counted. */
const TOLD = 20;

/** One call of `opa test`: its folders, the data of its tests, and which of them. */
interface Round {
  readonly args: readonly string[];
  /** True where the round is about files of the site only. */
  readonly site: boolean;
}

export interface RuleTests {
  readonly place: { readonly dir: string; readonly siteDir?: string | undefined };
  /** Path of OPA. */
  readonly opa: string;
  /** A directory for what tests read as data. */
  readonly work: string;
}

/**
 * The tests of the rules: the shipped ones without the rules of a site, which may well answer more strictly than a shipped test expects,
 * then those of the site with all rules together.
 *
 * @returns how many passed
 * @throws PolicyError `policy_test_failed` naming each test that fails, its file and its cases
 */
export async function runRuleTests(tests: RuleTests): Promise<number> {
  let passed = 0;
  for (const { args } of await roundsOf(tests)) {
    const result = await runOpa(tests.opa, ['test', ...PATIENCE, '--fail-on-empty', '--format', 'json', ...args], tests.place.dir);
    if (result.code !== 0) throw new PolicyError('policy_test_failed', `opa test: ${faultsOf(result)}`);
    passed += (JSON.parse(result.stdout) as unknown[]).length;
  }
  return passed;
}

/** @returns percent of the lines of all rules that their tests reach @throws PolicyError `policy_test_failed` naming the lines that none does */
export async function measureCoverage(tests: RuleTests): Promise<number> {
  const missed: string[] = [];
  let least = 100;
  for (const { args, site } of await roundsOf(tests)) {
    const result = await runOpa(tests.opa, ['test', ...PATIENCE, '--coverage', '--format', 'json', ...args], tests.place.dir);
    if (result.code !== 0) throw new PolicyError('policy_test_failed', `opa test: ${faultsOf(result)}`);
    const { coverage, files } = JSON.parse(result.stdout) as Coverage;
    if (!site) least = coverage;
    for (const [file, { not_covered = [] }] of Object.entries(files)) {
      if (site && file.startsWith(`${RULES_FOLDER}/`)) continue;
      missed.push(...not_covered.map(({ start }) => `${file}:${start.row}`));
    }
  }
  if (missed.length > 0) throw new PolicyError('policy_test_failed', `coverage: No test reaches ${missed.join(', ')}`);
  return least;
}

async function roundsOf({ place: { dir, siteDir }, work }: RuleTests): Promise<readonly Round[]> {
  const data = await testData({ dir, siteDir }, work);
  const own: Round = { args: [RULES_FOLDER, ...data.shipped], site: false };
  const folder = await siteFolder(dir, siteDir);
  return folder === undefined ? [own] : [own, { args: ['--run', TESTS_OF_A_SITE, RULES_FOLDER, folder, ...data.site], site: true }];
}

/** What tests read as `data`: the settings, and the rows with their whole questions. Bad data is told by the gate `data`, not here. */
async function testData({ dir, siteDir }: RuleTests['place'], work: string) {
  try {
    const [settings, cases] = await Promise.all([loadSettings(dir, siteDir), loadCases(dir, siteDir)]);
    const write = async (name: string, site: boolean): Promise<readonly string[]> => {
      const file = join(work, name);
      const rows = cases.filter((row) => row.site === site);
      await writeFile(file, JSON.stringify({ ...(JSON.parse(settings.json) as object), cases: rows }));
      return [file];
    };
    return { shipped: await write('shipped.json', false), site: await write('site.json', true) };
  } catch (error) {
    if (error instanceof PolicyError) return { shipped: [], site: [] };
    throw error;
  }
}

interface TestNode {
  readonly name: string;
  readonly fail?: boolean;
  readonly error?: unknown;
  readonly package?: string;
  readonly location?: { readonly file: string; readonly row: number };
  readonly sub_results?: Readonly<Record<string, TestNode>>;
}

interface Coverage {
  readonly coverage: number;
  readonly files: Readonly<Record<string, { readonly not_covered?: readonly { readonly start: { readonly row: number } }[] }>>;
}

/** The tests that fail, one a line with the cases of it that do; OPA's own words where it did not come to that. */
function faultsOf({ stdout, stderr }: OpaResult): string {
  const tests = readTests(stdout);
  const failing = tests.filter((test) => test.fail === true || test.error !== undefined);
  if (failing.length === 0) return `${stdout}${stderr}`.trim();
  const lines = failing.flatMap(({ package: where = '', name, location, sub_results: cases, error }) => {
    const at = location === undefined ? '' : ` (${location.file}:${location.row})`;
    const notes = Object.values(cases ?? {}).flatMap(failingNotes);
    return [`${where}.${name}${at}${error === undefined ? '' : `: ${JSON.stringify(error)}`}`, ...notes.map((note) => `  ${note}`)];
  });
  const more = lines.length > TOLD ? [`and ${lines.length - TOLD} lines more`] : [];
  return [`${failing.length} of ${tests.length} fail`, ...lines.slice(0, TOLD), ...more].join('\n');
}

function readTests(stdout: string): readonly TestNode[] {
  try {
    const value: unknown = JSON.parse(stdout);
    return Array.isArray(value) ? (value as TestNode[]) : [];
  } catch {
    return [];
  }
}

function failingNotes({ name, fail, sub_results: below }: TestNode): readonly string[] {
  if (fail !== true) return [];
  const deeper = Object.values(below ?? {}).flatMap(failingNotes);
  return deeper.length === 0 ? [name] : deeper.map((note) => `${name}: ${note}`);
}
