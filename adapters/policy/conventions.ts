import { PolicyError } from '../../core/errors.ts';
import { runOpa } from './opa.ts';
import { listRules } from './sources.ts';

/** What a public rule must say of itself, in `METADATA`, below `custom`. */
const TOLD = ['code', 'threat', 'solution'] as const;

interface Annotation {
  readonly scope?: string;
  readonly title?: string;
  readonly custom?: Readonly<Record<string, unknown>>;
}
interface ParsedRule {
  readonly head: { readonly name?: string; readonly ref?: readonly { readonly value: string }[] };
  readonly annotations?: readonly Annotation[];
}

/**
 * Faults of the rules against the conventions: a public rule (its name does not begin with `_`) has a title and says code, threat and
 * solution; no two rules share a code. One annotation of scope `document` speaks for all rules of its name in the file.
 */
export async function ruleFaults(opa: string, dir: string): Promise<readonly string[]> {
  const faults: string[] = [];
  const codes = new Map<string, string>();
  for (const file of await listRules(dir)) {
    const rules = await parseRules(opa, dir, file);
    const documented = new Set<string>();
    for (const rule of rules.filter((one) => !nameOf(one).startsWith('_'))) {
      if (documented.has(nameOf(rule))) continue;
      const annotation = rule.annotations?.find((one) => one.scope === 'rule' || one.scope === 'document');
      if (annotation?.scope === 'document') documented.add(nameOf(rule));
      const missing = TOLD.filter((key) => typeof annotation?.custom?.[key] !== 'string');
      if (annotation?.title === undefined || missing.length > 0)
        faults.push(`${file}: ${nameOf(rule)} lacks title or ${missing.join(', ')}`);
      const code = String(annotation?.custom?.code);
      if (codes.has(code)) faults.push(`${file}: code ${code} is used in ${codes.get(code)} too`);
      codes.set(code, file);
    }
  }
  return faults;
}

async function parseRules(opa: string, dir: string, file: string): Promise<readonly ParsedRule[]> {
  const { code, stdout, stderr } = await runOpa(opa, ['parse', '--format', 'json', file], dir);
  if (code !== 0) throw new PolicyError('policy_test_failed', `opa parse: ${stderr.trim()}`);
  return (JSON.parse(stdout) as { rules?: readonly ParsedRule[] }).rules ?? [];
}

const nameOf = ({ head }: ParsedRule): string => head.name ?? head.ref?.[0]?.value ?? '';
