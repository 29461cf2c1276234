import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { digestOf, sha256Hex } from '../../core/json.ts';

/** Folder of the rules below the bundle root; its path is its package. */
export const RULES_FOLDER = 'outwork';

/** Folder of an installation's own rules below `policies.dir`; its path is its package too. */
export const SITE_FOLDER = 'site';

/**
 * Below `dist/` of a bundle: the data as it was when the rules were built. What is shipped is compared with, not what it was made into
 * since.
 */
export const SHIPPED_DATA = 'data.json';

/** What the kernel asks for: the rule `decision` of the package `outwork`. */
export const ENTRYPOINT = 'outwork/decision';

/** What a public rule says of itself, kept beside the module so that a decision can be explained without OPA. */
export interface RuleNote {
  readonly code: string;
  readonly title: string;
  readonly threat: string;
  readonly solution: string;
  /** Package and name: `outwork.call.deny`. */
  readonly rule: string;
  /** Relative to its bundle root. */
  readonly file: string;
}

/** Written by the build beside the module, read at every load. */
export interface Manifest {
  readonly schema: 1;
  /** Version of the compiler. */
  readonly opa: string;
  /** Version of the input contracts that the rules were checked against. */
  readonly contract: number;
  readonly entrypoints: readonly string[];
  /** Digest over names and bytes of the rules (tests excepted), those of the site included. */
  readonly sources: string;
  /** sha256 of `policy.wasm`. */
  readonly wasm: string;
  readonly rules: readonly RuleNote[];
}

/** Paths of all rules below the bundle root, sorted, relative to it. Tests are not rules. */
export const listRules = (dir: string): Promise<readonly string[]> => listRego(dir, RULES_FOLDER);

/** Paths of the site's rules below `policies.dir`, sorted, relative to it. */
export const listSiteRules = (siteDir: string): Promise<readonly string[]> => listRego(siteDir, SITE_FOLDER);

/** The folder of a site's rules as OPA is told of it, from the bundle root; undefined when the site has none. */
export async function siteFolder(dir: string, siteDir: string | undefined): Promise<string | undefined> {
  if (siteDir === undefined || (await listSiteRules(siteDir)).length === 0) return undefined;
  return relative(dir, join(siteDir, SITE_FOLDER));
}

async function listRego(dir: string, folder: string): Promise<readonly string[]> {
  const entries = await readdir(join(dir, folder), { recursive: true, withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (folder === SITE_FOLDER && error.code === 'ENOENT') return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.rego') && !entry.name.endsWith('_test.rego'))
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort();
}

/** One digest for the rules as they are on disk; equal only when names and bytes are. */
export async function sourceDigest(dir: string, siteDir?: string): Promise<string> {
  const own = await fileDigests(dir, await listRules(dir));
  if (siteDir === undefined) return digestOf('outwork.policy-sources', own);
  return digestOf('outwork.policy-sources', [...own, ...(await fileDigests(siteDir, await listSiteRules(siteDir)))]);
}

const fileDigests = (dir: string, paths: readonly string[]): Promise<[string, string][]> =>
  Promise.all(paths.map(async (path) => [path, sha256Hex(await readFile(join(dir, path)))]));

/** Where the compiled rules lie: with the site's rules when there are any, since they are compiled in. */
export const distDir = (dir: string, siteDir?: string): string => join(siteDir ?? dir, 'dist');
