import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { PolicyError } from '../../core/errors.ts';

const NAME = '[a-z][a-z0-9_-]*';

/** What may lie in each folder of a bundle root; `outwork` is the folder of the shipped rules, `site` that of an installation. */
const ADMITTED: Readonly<Record<string, RegExp>> = {
  outwork: /\.rego$/,
  site: /\.rego$/,
  data: new RegExp(`^${NAME}\\.yaml$`),
  cases: new RegExp(`^${NAME}\\.yaml$`),
  schemas: new RegExp(`^(input|settings)/${NAME}\\.json$`),
  dist: /^(policy\.wasm|manifest\.json|data\.json|release\.jws)$/,
};

/**
 * Refuses a bundle root that holds anything but what belongs there: a file nobody looks at today is one that somebody relies on tomorrow.
 * Hidden files, and what the build is about to put in place (`.new`), are passed over.
 *
 * @throws PolicyError `policy_malformed` naming the file
 */
export async function verifyFileSet(root: string): Promise<void> {
  for (const [folder, admitted] of Object.entries(ADMITTED)) {
    const at = join(root, folder);
    for (const entry of await entriesOf(at)) {
      const path = relative(at, join(entry.parentPath, entry.name));
      if (path.split('/').some((part) => part.startsWith('.')) || path.endsWith('.new') || entry.isDirectory()) continue;
      if (!entry.isFile()) throw new PolicyError('policy_malformed', `${folder}/${path} is not a regular file`);
      if (!admitted.test(path)) throw new PolicyError('policy_malformed', `${folder}/${path} does not belong there`);
    }
  }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { recursive: true, withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
