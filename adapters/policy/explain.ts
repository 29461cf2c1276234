import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { findOpa, runOpa } from './opa.ts';
import { type ParsedFile, parseRules } from './rule-notes.ts';
import { loadSettings } from './settings.ts';
import { RULES_FOLDER, SITE_FOLDER } from './sources.ts';
import type { PolicyPlace } from './test-policy.ts';

/** What one rule did with a question. */
export interface RuleTrace {
  /** Package and name: `outwork.call.deny`. */
  readonly rule: string;
  readonly code: string;
  readonly title: string;
  readonly fired: boolean;
  /** `file:row` of the first condition that did not hold; undefined when the rule fired. */
  readonly stoppedAt: string | undefined;
  /** That line. */
  readonly line: string | undefined;
}

interface Covered {
  readonly files: Readonly<
    Record<string, { readonly covered?: readonly { readonly start: { row: number }; readonly end: { row: number } }[] }>
  >;
}

/**
 * Asks OPA's interpreter the question and tells of every rule of its kind whether it fired and, if not, where it stopped.
 * The answer is that of the rules and data on disk now.
 *
 * @param input - as rules see it
 * @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_test_failed` with OPA's words
 */
export async function traceRules(place: PolicyPlace, input: Readonly<Record<string, unknown>>): Promise<readonly RuleTrace[]> {
  const opa = await findOpa();
  const kind = /^[a-z]+$/.test(String(input.kind)) ? String(input.kind) : 'none';
  const files = (await parseRules(opa, place.dir, place.siteDir)).filter(({ package: of }) => speaksFor(of, kind));
  const covered = await coverageOf(opa, place, kind, input);
  const traces = await Promise.all(files.map((file) => traceFile(place, file, covered)));
  return traces.flat();
}

const speaksFor = (of: string, kind: string): boolean =>
  of === `${RULES_FOLDER}.${kind}` || of === `${SITE_FOLDER}.${kind}` || of === `${RULES_FOLDER}.${SITE_FOLDER}`;

async function coverageOf(opa: string, { dir, siteDir }: PolicyPlace, kind: string, input: unknown): Promise<Covered> {
  const work = await mkdtemp(join(tmpdir(), 'outwork-explain-'));
  try {
    const [data, question] = [join(work, 'data.json'), join(work, 'input.json')];
    await writeFile(data, (await loadSettings(dir, siteDir)).json);
    await writeFile(question, JSON.stringify(input));
    const site = siteDir === undefined ? [] : ['-d', relative(dir, join(siteDir, SITE_FOLDER))];
    const sources = ['-d', RULES_FOLDER, ...site, '-d', data, '-i', question];
    const query = `[[x | x := data.outwork.${kind}], [x | x := data.outwork.site], [x | x := data.site.${kind}]]`;
    const { code, stdout, stderr } = await runOpa(
      opa,
      ['eval', '--coverage', '--disable-indexing', '--disable-early-exit', '--format', 'json', ...sources, query],
      dir,
    );
    if (code !== 0) throw new PolicyError('policy_test_failed', `opa eval: ${stderr.trim() || stdout.trim()}`);
    return (JSON.parse(stdout) as { coverage: Covered }).coverage;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function traceFile(
  { dir, siteDir }: PolicyPlace,
  { file, package: of, rules }: ParsedFile,
  { files }: Covered,
): Promise<RuleTrace[]> {
  const root = of.startsWith(SITE_FOLDER) && siteDir !== undefined ? siteDir : dir;
  const lines = (await readFile(join(root, file), 'utf8')).split('\n');
  const path = root === dir ? file : relative(dir, join(root, file));
  const rows = new Set((files[path]?.covered ?? []).flatMap(({ start, end }) => range(start.row, end.row)));
  return rules
    .map((rule, at) => ({ rule, until: (rules[at + 1]?.from ?? lines.length + 1) - 1 }))
    .filter(({ rule }) => !rule.name.startsWith('_') && !rule.isFunction)
    .map(({ rule, until }) => {
      const fired = rows.has(rule.from);
      const stopped = fired ? undefined : firstFailure(lines, rule.from, until, rows);
      return {
        rule: `${of}.${rule.name}`,
        code: String(rule.annotation?.custom?.code ?? ''),
        title: rule.annotation?.title ?? '',
        fired,
        stoppedAt: stopped === undefined ? undefined : `${file}:${stopped}`,
        line: stopped === undefined ? undefined : lines[stopped - 1]?.trim(),
      };
    });
}

/** The last condition that was looked at: the one that did not hold. None was when OPA's index passed the rule over: then it is the first. */
function firstFailure(lines: readonly string[], from: number, until: number, rows: ReadonlySet<number>): number | undefined {
  const opening = range(from, until).find((row) => /\bif\b/.test(lines[row - 1] ?? ''));
  if (opening === undefined) return undefined;
  const body = range(opening, until).filter((row) => /\S/.test((lines[row - 1] ?? '').replace(/^\s*(#.*|\})\s*$/, '')));
  return body.filter((row) => rows.has(row)).at(-1) ?? body.find((row) => row > opening) ?? opening;
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
