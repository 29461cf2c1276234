import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { digestOf, sha256Hex } from '../../core/json.ts';

/** Folder of the rules below the bundle root; its path is its package. */
export const RULES_FOLDER = 'outwork';

/** What the kernel asks for: the rule `decision` of the package `outwork`. */
export const ENTRYPOINT = 'outwork/decision';

/** Written by the build beside the module, read at every load. */
export interface Manifest {
  readonly schema: 1;
  /** Version of the compiler. */
  readonly opa: string;
  readonly entrypoints: readonly string[];
  /** Digest over names and bytes of the rules (tests excepted). */
  readonly sources: string;
  /** sha256 of `policy.wasm`. */
  readonly wasm: string;
}

/** Paths of all rules below the bundle root, sorted, relative to it. Tests are not rules. */
export async function listRules(dir: string): Promise<readonly string[]> {
  const entries = await readdir(join(dir, RULES_FOLDER), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.rego') && !entry.name.endsWith('_test.rego'))
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort();
}

/** One digest for the rules as they are on disk; equal only when names and bytes are. */
export async function sourceDigest(dir: string): Promise<string> {
  const rules = await listRules(dir);
  const digests = await Promise.all(rules.map(async (path) => [path, sha256Hex(await readFile(join(dir, path)))]));
  return digestOf('outwork.policy-sources', digests);
}
