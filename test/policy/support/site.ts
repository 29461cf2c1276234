import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buildPolicy } from '../../../adapters/policy/build.ts';
import type { PolicyKind } from '../../../core/policy/contracts.ts';
import { temporaryDir } from './policy-dir.ts';

/** Rules of an installation's own, built together with the bundle below `dir`. */
export async function siteWith(dir: string, files: Readonly<Record<string, string>>): Promise<string> {
  const siteDir = await temporaryDir();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(siteDir, path)), { recursive: true });
    await writeFile(join(siteDir, path), text);
  }
  await buildPolicy(dir, siteDir);
  return siteDir;
}

/** A rule of the site, about calls unless it says. */
export const siteRule = (effect: string, value: string, condition: string, kind: PolicyKind = 'call'): string => `package site.${kind}

# METADATA
# title: Of the site
# custom:
#   code: of_the_site
#   threat: none
#   solution: none
${effect} contains ${value} if {
	${condition}
}
`;

export const REASON = '{"code": "of_the_site", "message": "The site says so."}';
