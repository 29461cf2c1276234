import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { ConfigError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { isScenarioPath } from './scenario-name.ts';

/** A scripted workload; `harnesses/scripted/scenario.schema.json` describes the file. */
export interface Scenario {
  readonly name: string;
  readonly description: string;
  readonly steps: readonly ScenarioStep[];
}

export interface ScenarioStep {
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly args: { readonly [key: string]: Json } }[];
}

const MAX_SCENARIO_BYTES = 4 * 1024 * 1024;
const SHIPPED = join(import.meta.dirname, '../../harnesses/scripted');

/**
 * Reads a scenario: a shipped one by its name, any other by its path (`isScenarioPath`).
 *
 * @throws ConfigError `config_unreadable` `config_malformed`, each fault as `path: message`
 */
export function readScenario(nameOrPath: string): Scenario {
  const isPath = isScenarioPath(nameOrPath);
  const file = isPath ? nameOrPath : join(SHIPPED, 'scenarios', `${nameOrPath}.json`);
  const hint = isPath ? undefined : `shipped scenarios: ${shippedNames().join(', ')}`;
  const value = parse(file, readText(file, nameOrPath, hint));
  const check = new Ajv({ allErrors: true, allowUnionTypes: true }).compile<Scenario>(
    parse('schema', readText(join(SHIPPED, 'scenario.schema.json'), 'schema')) as object,
  );
  if (check(value)) return value;
  const faults = (check.errors ?? []).map(({ instancePath, message, params }) => {
    const key = (params as { additionalProperty?: string }).additionalProperty;
    return `${file}${instancePath.replaceAll('/', '.')}: ${message ?? 'wrong'}${key === undefined ? '' : ` (${key})`}`;
  });
  throw new ConfigError('config_malformed', faults.slice(0, 10).join('\n'));
}

const shippedNames = (): readonly string[] => readdirSync(join(SHIPPED, 'scenarios')).map((file) => file.replace(/\.json$/, ''));

function readText(file: string, name: string, hint?: string): string {
  try {
    const found = statSync(file);
    if (!found.isFile() || found.size > MAX_SCENARIO_BYTES) throw new Error(`no regular file of at most ${MAX_SCENARIO_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const message = hint === undefined ? `no scenario can be read from ${file}` : `there is no scenario ${name}`;
    throw new ConfigError('config_unreadable', message, hint === undefined ? { cause } : { cause, hint });
  }
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ConfigError('config_malformed', `${file}: ${(cause as Error).message}`, { cause });
  }
}
