import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { type Document, isScalar, parseDocument, visit } from 'yaml';
import { PolicyError } from '../../core/errors.ts';
import { canonicalJson, digestOf, jsonFault } from '../../core/json.ts';
import { FileCache } from './file-cache.ts';
import { DATA_FORMATS } from './formats.ts';
import { DIRECTIONS } from './site-data.ts';

/** What rules read as `data.settings.<file name>`, and those of a site as `data.site_settings.<file name>`. */
export interface Settings {
  /** Canonical JSON of `{"settings": {…}}`, `site_settings` beside it when there is a site. */
  readonly json: string;
  readonly digest: string;
  /** The number that data/release.yaml states; 0 when there is no such file. */
  readonly version: number;
}

const MAX_FILE_BYTES = 1024 * 1024;

/**
 * Reads `data/*.yaml` and checks each file against `schemas/settings/<same name>.json`.
 * All or nothing: every schema has its file and every file its schema.
 *
 * @throws PolicyError `policy_malformed` naming file and place
 */
export async function loadSettings(dir: string, siteDir?: string, cache: FileCache = new FileCache()): Promise<Settings> {
  const settings = await loadFolder(dir, cache);
  const version = (settings.release as { version?: number } | undefined)?.version ?? 0;
  if (siteDir === undefined || !existsSync(join(siteDir, 'data')))
    return { json: canonicalJson({ settings }), digest: digestOf('outwork.policy-data', settings), version };
  const whole = { settings, site_settings: await loadFolder(siteDir, cache) };
  return { json: canonicalJson(whole), digest: digestOf('outwork.policy-data', whole), version };
}

async function loadFolder(dir: string, cache: FileCache): Promise<Record<string, unknown>> {
  const files = await namesIn(join(dir, 'data'), '.yaml');
  const folder = join(dir, 'schemas', 'settings');
  const schemas = existsSync(folder) ? await namesIn(folder, '.json') : [];
  const lonely = files.find((name) => !schemas.includes(name)) ?? schemas.find((name) => !files.includes(name));
  if (lonely !== undefined) throw malformed(`data/${lonely}.yaml`, `needs both the file and schemas/settings/${lonely}.json`);
  const settings: Record<string, unknown> = {};
  for (const name of files) settings[name] = await loadFile(dir, name, cache);
  return settings;
}

async function loadFile(dir: string, name: string, cache: FileCache): Promise<unknown> {
  const file = `data/${name}.yaml`;
  const read = (path: string) =>
    readFile(join(dir, path), 'utf8').catch((error: Error) => {
      throw malformed(path, error.message);
    });
  const [text, schema] = await Promise.all([read(file), read(schemaOf(name))]);
  const key = join(dir, file);
  const check = cache.get(`${key} schema`, schema, () => schemaCheck(schemaOf(name), schema));
  return cache.get(key, `${schema}\0${text}`, () => checkedValue(file, text, check));
}

const schemaOf = (name: string): string => `schemas/settings/${name}.json`;

function schemaCheck(file: string, schema: string): ValidateFunction {
  const ajv = new Ajv({ strict: true, strictRequired: false, formats: DATA_FORMATS });
  ajv.addKeyword({ keyword: 'narrows', metaSchema: { enum: DIRECTIONS } });
  try {
    return ajv.compile(JSON.parse(schema));
  } catch (error) {
    throw malformed(file, (error as Error).message);
  }
}

function checkedValue(file: string, text: string, check: ValidateFunction): unknown {
  if (text.length > MAX_FILE_BYTES) throw malformed(file, 'is larger than 1 MiB');
  // A file that is being written is cut anywhere; most cuts do not end a line. (The others are caught by the second look of the poll.)
  if (!text.endsWith('\n')) throw malformed(file, 'does not end with a line end');
  const document = parseDocument(text, { uniqueKeys: false, merge: false });
  const problem = (document.errors[0] ?? document.warnings[0])?.message ?? repeatedKey(document);
  if (problem !== undefined) throw malformed(file, problem);
  const value = plainValue(document, file);
  const fault = jsonFault(value, { maxDepth: 32, maxElements: 100_000 });
  if (fault !== undefined) throw malformed(file, fault);
  if (!check(value)) throw malformed(file, `${check.errors?.[0]?.instancePath || '/'}: ${check.errors?.[0]?.message}`);
  return value;
}

/** The parser's own look for this compares each key with all others: ten thousand hosts took it more than a second. */
function repeatedKey(document: Document): string | undefined {
  let problem: string | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        const text = String(isScalar(key) ? key.value : key);
        if (seen.has(text)) problem = `${text} is there more than once`;
        seen.add(text);
      }
      return problem === undefined ? undefined : visit.BREAK;
    },
  });
  return problem;
}

/** Aliases could make a small file a huge value. */
function plainValue(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw malformed(file, (error as Error).message);
  }
}

async function namesIn(dir: string, extension: string): Promise<readonly string[]> {
  const names = await readdir(dir).catch((error: Error) => {
    throw malformed(dir, error.message);
  });
  return names
    .filter((name) => name.endsWith(extension) && !name.startsWith('.'))
    .map((name) => name.slice(0, -extension.length))
    .sort();
}

const malformed = (file: string, problem: string): PolicyError => new PolicyError('policy_malformed', `${file}: ${problem}`);
