import { PolicyError } from '../../core/errors.ts';
import { POLICY_KINDS } from '../../core/policy/contracts.ts';
import { type ParsedFile, packageOfPath, parseRules } from './rule-notes.ts';
import { RULES_FOLDER, SITE_FOLDER } from './sources.ts';

/** What a public rule must say of itself, in `METADATA`, below `custom`. */
const TOLD = ['code', 'threat', 'solution'] as const;

/** What a package of the site may offer: nothing that is read as an allow. */
const SITE_OFFERS: ReadonlySet<string> = new Set(['ask', 'deny', 'obligations']);

/**
 * Faults of the rules against the conventions:
 *
 * - the package of a file is its folder; the bundle's begin with `outwork`, those of the site with `site`;
 * - a public rule (its name does not begin with `_`) has a title and says code, threat and solution; a public function has a title;
 * - no two rules share a code, but for several bodies under one annotation of scope `document`;
 * - a package of the site offers deny, ask and obligations only, and obligations for calls only: nothing else has an outcome to be held to.
 */
export async function ruleFaults(opa: string, dir: string, siteDir?: string): Promise<readonly string[]> {
  const files = await parseRules(opa, dir, siteDir);
  return [...files.flatMap(packageFaults), ...metadataFaults(files)];
}

/** What must hold before the site's rules are compiled together with the bundle's. @throws PolicyError `policy_build_failed` */
export function refuseForeignPackages(files: readonly ParsedFile[]): void {
  const faults = files.flatMap(packageFaults);
  if (faults.length > 0) throw new PolicyError('policy_build_failed', faults.join('\n'));
}

function packageFaults({ file, package: of, rules }: ParsedFile): string[] {
  const faults: string[] = [];
  if (of !== packageOfPath(file)) faults.push(`${file}: its package is ${of}, its folder says ${packageOfPath(file)}`);
  const root = of.split('.', 1)[0] ?? '';
  if (root !== RULES_FOLDER && root !== SITE_FOLDER) faults.push(`${file}: a package begins with ${RULES_FOLDER} or ${SITE_FOLDER}`);
  if (root === SITE_FOLDER) {
    const more = rules.filter(({ name }) => !name.startsWith('_') && !SITE_OFFERS.has(name));
    for (const { name } of more) faults.push(`${file}: ${name} is not deny, ask or obligations; the name of a helper begins with _`);
    const unheard =
      POLICY_KINDS.some((kind) => kind !== 'call' && of === `${SITE_FOLDER}.${kind}`) && rules.some(({ name }) => name === 'obligations');
    if (unheard) faults.push(`${file}: obligations are for calls, and would not be heard here`);
  }
  return faults;
}

function metadataFaults(files: readonly ParsedFile[]): string[] {
  const faults: string[] = [];
  const codes = new Map<string, string>();
  for (const { file, rules } of files) {
    const documented = new Set<string>();
    for (const { name, isFunction, annotation } of rules.filter(({ name }) => !name.startsWith('_'))) {
      if (documented.has(name)) continue;
      if (annotation?.scope === 'document' || isFunction) documented.add(name);
      const missing = isFunction ? [] : TOLD.filter((key) => typeof annotation?.custom?.[key] !== 'string');
      if (annotation?.title === undefined || missing.length > 0) faults.push(`${file}: ${name} lacks title or ${missing.join(', ')}`);
      if (isFunction) continue;
      const code = String(annotation?.custom?.code);
      if (codes.has(code)) faults.push(`${file}: code ${code} is used in ${codes.get(code)} too`);
      codes.set(code, file);
    }
  }
  return faults;
}
