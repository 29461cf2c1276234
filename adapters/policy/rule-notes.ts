import { dirname } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { runOpa } from './opa.ts';
import { listRules, listSiteRules, type RuleNote } from './sources.ts';

export interface Annotation {
  readonly scope?: string;
  readonly title?: string;
  readonly custom?: Readonly<Record<string, unknown>>;
}

export interface ParsedRule {
  readonly name: string;
  readonly isFunction: boolean;
  /** Nothing but a `default`. */
  readonly isDefault: boolean;
  /** The annotation that speaks for it: its own, or one of scope `document` at an earlier rule of its name. */
  readonly annotation: Annotation | undefined;
  /** First and last row, head included. */
  readonly from: number;
}

export interface ParsedFile {
  readonly file: string;
  readonly package: string;
  readonly rules: readonly ParsedRule[];
}

interface RawRule {
  readonly default?: boolean;
  readonly head: { readonly name?: string; readonly ref?: readonly { readonly value: string }[]; readonly args?: readonly unknown[] };
  readonly annotations?: readonly Annotation[];
  readonly location?: { readonly row: number };
}

/** Parses every rule of the bundle, and of the site. @throws PolicyError `policy_test_failed` with OPA's words */
export async function parseRules(opa: string, dir: string, siteDir?: string): Promise<readonly ParsedFile[]> {
  const own = await Promise.all((await listRules(dir)).map((file) => parseFile(opa, dir, file)));
  if (siteDir === undefined) return own;
  return [...own, ...(await Promise.all((await listSiteRules(siteDir)).map((file) => parseFile(opa, siteDir, file))))];
}

/** Notes of all rules that carry a code. */
export function ruleNotes(files: readonly ParsedFile[]): readonly RuleNote[] {
  return files.flatMap(({ file, package: of, rules }) => {
    const notes = rules.flatMap(({ name, annotation }) => {
      const { code, threat, solution } = annotation?.custom ?? {};
      if (typeof code !== 'string') return [];
      const title = annotation?.title ?? '';
      return [{ code, title, threat: String(threat), solution: String(solution), rule: `${of}.${name}`, file }];
    });
    return [...new Map(notes.map((note) => [note.code, note])).values()];
  });
}

/** The package that a file of this path must be of. */
export const packageOfPath = (file: string): string => dirname(file).replaceAll('/', '.');

async function parseFile(opa: string, dir: string, file: string): Promise<ParsedFile> {
  const { code, stdout, stderr } = await runOpa(opa, ['parse', '--format', 'json', '--json-include', 'locations', file], dir);
  if (code !== 0) throw new PolicyError('policy_test_failed', `opa parse: ${faultsOf(file, stderr)}`);
  const parsed = JSON.parse(stdout) as { package: { path: readonly { value: string }[] }; rules?: readonly RawRule[] };
  const documents = new Map<string, Annotation>();
  const rules = (parsed.rules ?? []).map((raw): ParsedRule => {
    const name = raw.head.name ?? raw.head.ref?.[0]?.value ?? '';
    const own = raw.annotations?.find(({ scope }) => scope === 'rule' || scope === 'document');
    if (own?.scope === 'document') documents.set(name, own);
    return {
      name,
      isFunction: (raw.head.args?.length ?? 0) > 0,
      isDefault: raw.default === true,
      annotation: own ?? documents.get(name),
      from: raw.location?.row ?? 0,
    };
  });
  const path = parsed.package.path.map(({ value }) => value).slice(1);
  return { file, package: path.join('.'), rules };
}

/** OPA's own words, a line each: it tells parse errors in JSON. */
function faultsOf(file: string, stderr: string): string {
  try {
    const { errors } = JSON.parse(stderr) as { errors: readonly { message: string; location?: { row: number; col: number } }[] };
    const lines = errors.map(({ message, location: at }) => `${file}${at === undefined ? '' : `:${at.row}:${at.col}`}: ${message}`);
    return [...new Set(lines)].join('\n');
  } catch {
    return stderr.trim();
  }
}
