import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { EffectClass } from '../../core/capability/types.ts';
import { PolicyError } from '../../core/errors.ts';
import { isMapping } from '../../core/json.ts';
import type { Obligation } from '../../core/policy/types.ts';
import { FileCache } from './file-cache.ts';
import { fromRegoObligation } from './marshal.ts';

/** One row of `cases/*.yaml`: a question in its Rego form and what the rules say to it. */
export interface PolicyCase {
  readonly kind: string;
  readonly note: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly effect: 'allow' | 'ask' | 'deny';
  readonly codes: readonly string[];
  readonly obligations: readonly Obligation[];
  /** Laid over the data, for a row about data that the bundle does not have. */
  readonly settings: Readonly<Record<string, unknown>> | undefined;
  /** Must hold under any data. */
  readonly floor: boolean;
  /** Of the installation's own table. */
  readonly site: boolean;
}

const object = z.record(z.string(), z.unknown());
const rowSchema = z.strictObject({
  note: z.string().min(1),
  shell: z.array(z.string()).optional(),
  input: object.optional(),
  effect: z.enum(['allow', 'ask', 'deny']),
  codes: z.array(z.string()),
  lowered: z.enum(['pure', 'idempotent']).optional(),
  obligations: z.array(object).optional(),
  settings: object.optional(),
  floor: z.boolean().optional(),
});
const fileSchema = z.strictObject({
  settings: object.optional(),
  bases: z.record(z.string(), object).optional(),
  cases: z.record(z.string(), z.array(rowSchema)),
});

/**
 * Reads every row below `<dir>/cases`, those of the site after those of the bundle; a folder that is not there has none.
 *
 * @throws PolicyError `policy_malformed` naming file and place
 */
export async function loadCases(dir: string, siteDir?: string, cache: FileCache = new FileCache()): Promise<readonly PolicyCase[]> {
  const shipped = (await readFolder(join(dir, 'cases'), cache)).map((file) => ({ ...file, site: false }));
  const own = siteDir === undefined ? [] : await readFolder(join(siteDir, 'cases'), cache);
  const files = [...shipped, ...own.map((file) => ({ ...file, site: true }))];
  const bases = Object.assign({}, ...files.map((file) => file.bases ?? {})) as Record<string, Record<string, unknown>>;
  return files.flatMap(({ name, settings, cases, site }) =>
    Object.entries(cases).flatMap(([kind, rows]) => {
      const base = bases[kind];
      if (base === undefined) throw malformed(name, `cases.${kind}: there is no base of this kind`);
      return rows.map((row) => ({ ...toCase(name, kind, base, withSettings(row, settings)), site }));
    }),
  );
}

async function readFolder(folder: string, cache: FileCache) {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const files = names.filter((name) => name.endsWith('.yaml') && !name.startsWith('.')).sort();
  return Promise.all(
    files.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8');
      return { name, ...cache.get(join(folder, name), text, () => parseFile(name, text)) };
    }),
  );
}

function parseFile(name: string, text: string): z.infer<typeof fileSchema> {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw malformed(name, (error as Error).message);
  }
  const parsed = fileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw malformed(name, `${issue?.path.join('.')}: ${issue?.message}`);
}

/** A row under the settings of its file; one of the floor stays without, for it must hold whatever the data says. */
function withSettings(row: z.infer<typeof rowSchema>, settings: Record<string, unknown> | undefined): z.infer<typeof rowSchema> {
  return settings === undefined || row.floor ? row : { ...row, settings: overlay(settings, row.settings ?? {}) };
}

function toCase(file: string, kind: string, base: Record<string, unknown>, row: z.infer<typeof rowSchema>): Omit<PolicyCase, 'site'> {
  const { note, shell, input = {}, effect, codes, lowered, obligations = [], settings, floor = false } = row;
  const read = obligations.map((written) => fromRegoObligation(written));
  if (read.some((obligation) => typeof obligation === 'string')) throw malformed(file, `${note}: an obligation is not one`);
  const lowering: Obligation[] = lowered === undefined ? [] : [{ kind: 'effect_class', class: lowered as EffectClass }];
  return {
    kind,
    note,
    input: overlay(overlay(base, shell === undefined ? {} : { args: shellArguments(shell) }), input),
    effect,
    codes,
    obligations: [...(read as Obligation[]), ...lowering],
    settings,
    floor,
  };
}

const shellArguments = (argv: readonly string[]) => ({
  argv,
  argv_length: argv.length,
  cwd: '.',
  env: [],
  stdin_bytes: 0,
  background: false,
});

/** As `object.union` of Rego: objects are merged, everything else is replaced. */
export function overlay(below: Readonly<Record<string, unknown>>, above: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const held = merged[key];
    merged[key] = isMapping(held) && isMapping(value) ? overlay(held, value) : value;
  }
  return merged;
}

const malformed = (file: string, problem: string): PolicyError => new PolicyError('policy_malformed', `cases/${file}: ${problem}`);
