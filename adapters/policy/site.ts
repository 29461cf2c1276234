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
  const folder = join(siteDir, 'schemas', 'settings');
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const schemas = names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  const [rules, texts] = await Promise.all([textsOf(siteDir, await listSiteRules(siteDir)), textsOf(folder, schemas)]);
  return {
    rules: Object.fromEntries(rules),
    schemas: Object.fromEntries(texts.map(([name, text]) => [name.slice(0, -'.json'.length), text])),
  };
}

const textsOf = (folder: string, names: readonly string[]): Promise<(readonly [name: string, text: string])[]> =>
  Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const));
