import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { admittedCapabilities } from './build.ts';
import { loadBundle } from './bundle.ts';
import { ruleFaults } from './conventions.ts';
import { findOpa, type OpaResult, runOpa } from './opa.ts';
import { loadSettings } from './settings.ts';
import { RULES_FOLDER } from './sources.ts';

export interface PolicyTestReport {
  readonly tests: number;
  /** Percent of the rules' lines that a test reached; less than 100 is an error. */
  readonly coverage: number;
}

/**
 * Every gate of the rules, in the order in which a mistake is cheapest to read: format, types against the schemas, allowed built-ins,
 * conventions, tests, coverage, data, and whether `dist/` was built from these rules.
 *
 * @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_test_failed` with the tool's own words; PolicyError `policy_malformed`
 *   (data) or `policy_stale` (dist)
 */
export async function testPolicy(dir: string): Promise<PolicyTestReport> {
  const opa = await findOpa();
  const work = await mkdtemp(join(tmpdir(), 'outwork-policy-'));
  const gate = async (...args: string[]): Promise<OpaResult> => {
    const result = await runOpa(opa, args, dir);
    if (result.code !== 0) throw failed(`opa ${args[0]}`, `${result.stdout}${result.stderr}`);
    return result;
  };
  try {
    const capabilities = join(work, 'capabilities.json');
    await writeFile(capabilities, await admittedCapabilities(opa, dir));
    await gate('fmt', '--list', '--fail', RULES_FOLDER);
    await gate('check', '--strict', '--schema', 'schemas', '--capabilities', capabilities, RULES_FOLDER);
    const faults = await ruleFaults(opa, dir);
    if (faults.length > 0) throw failed('conventions', faults.join('\n'));
    const settings = join(work, 'settings.json');
    await writeFile(settings, (await loadSettings(dir)).json);
    const tested = await gate('test', '--fail-on-empty', '--format', 'json', RULES_FOLDER, settings);
    const covered = await gate('test', '--coverage', '--format', 'json', RULES_FOLDER, settings);
    const report = { tests: (JSON.parse(tested.stdout) as unknown[]).length, coverage: coverageOf(covered.stdout) };
    await loadBundle(dir);
    return report;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

interface Coverage {
  readonly coverage: number;
  readonly files: Readonly<Record<string, { readonly not_covered?: readonly { readonly start: { readonly row: number } }[] }>>;
}

function coverageOf(report: string): number {
  const { coverage, files } = JSON.parse(report) as Coverage;
  const missed = Object.entries(files).flatMap(([file, { not_covered = [] }]) => not_covered.map(({ start }) => `${file}:${start.row}`));
  if (missed.length > 0) throw failed('coverage', `No test reaches ${missed.join(', ')}`);
  return coverage;
}

const failed = (gate: string, detail: string): PolicyError => new PolicyError('policy_test_failed', `${gate}: ${detail.trim()}`);
