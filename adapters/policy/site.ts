import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listSiteRules } from './sources.ts';

/** An installation's own rules and the schemas of its data, as they were written: what a change of them is judged by. */
export interface Site {
  /** Text by path below `policies.dir`. */
  readonly rules: Readonly<Record<string, string>>;
  /** Text by the name of the data. */
  readonly schemas: Readonly<Record<string, string>>;
}

/** Reads what `policies.dir` says beside its data. */
export async function loadSite(siteDir: string): Promise<Site> {
  const rules = (await listSiteRules(siteDir)).map(async (path) => [path, await readFile(join(siteDir, path), 'utf8')] as const);
  const folder = join(siteDir, 'schemas', 'settings');
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const schemas = names
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .map(async (name) => [name.slice(0, -'.json'.length), await readFile(join(folder, name), 'utf8')] as const);
  return { rules: Object.fromEntries(await Promise.all(rules)), schemas: Object.fromEntries(await Promise.all(schemas)) };
}
