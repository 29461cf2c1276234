import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CompiledConfig, TenantConfig } from '../core/config.ts';
import { ConfigError } from '../core/errors.ts';
import { ACCOUNT_KINDS, type AccountKind, CEILINGS, type Ceilings, DIMENSIONS, type Dimension } from '../core/limits.ts';
import type { PlacementName } from '../core/run/types.ts';
import { type Environment, faultText, findConfigFile, readConfigFile } from './config/file.ts';
import { type ConfigFile, capacityFaults, defaultCapacity, defaultLimits, defaultRetention, retentionFaults } from './config/schema.ts';
import { defaultStateDir } from './config/state-dir.ts';
import { scenarioFrom } from './model/scenario-name.ts';

/** What a command line may say over the file. */
export interface ConfigOverrides {
  readonly placement?: PlacementName;
  readonly engine?: CompiledConfig['engine'];
  readonly harness?: string;
  readonly scenario?: string;
  readonly listen?: string;
}

/** Where `serve` listens unless told otherwise. */
const DEFAULT_LISTEN = '127.0.0.1:7270';

export interface LoadOptions {
  /** `--config`; without it the search order of `findConfigFile`. */
  readonly file?: string | undefined;
  readonly env: Environment;
  /** Absolute. */
  readonly cwd: string;
  /** `--state`; relative to `cwd`. */
  readonly stateDir?: string | undefined;
  readonly overrides?: ConfigOverrides;
}

/** Where a value came from. */
export type ConfigSource = 'default' | 'file' | 'command line';

/** One effective value under its dotted path. */
export interface ConfigLine {
  readonly path: string;
  readonly value: string | number;
  readonly source: ConfigSource;
}

/**
 * The configuration that applies: file over defaults, command line over file; frozen. Touches nothing but the file; `ensureStateDir` makes
 * the state directory.
 * @throws ConfigError `config_unreadable` `config_malformed` `config_unknown_key`; a bad file never falls back to the defaults
 */
export const loadConfig = (options: LoadOptions): CompiledConfig => explainConfig(options).config;

/** As `loadConfig`, with the source of every value, in the order of the file's own keys. @throws ConfigError as `loadConfig` */
export function explainConfig(options: LoadOptions): { readonly config: CompiledConfig; readonly lines: readonly ConfigLine[] } {
  const file = findConfigFile(options);
  const given: ConfigFile = file === undefined ? {} : readConfigFile(file);
  const base = file === undefined ? options.cwd : dirname(file);
  const { overrides = {} } = options;
  const lines: ConfigLine[] = [];
  const pick = <T extends string | number>(path: string, fallback: T, fromFile: T | undefined, fromCommand?: T | undefined): T => {
    const value = fromCommand ?? fromFile ?? fallback;
    const source = fromCommand !== undefined ? 'command line' : fromFile !== undefined ? 'file' : 'default';
    lines.push({ path, value, source });
    return value;
  };

  const profile = pick('profile', 'development', given.profile);
  const stateDir = pick(
    'stateDir',
    defaultStateDir(options.env),
    given.stateDir === undefined ? undefined : resolve(base, given.stateDir),
    options.stateDir === undefined ? undefined : resolve(options.cwd, options.stateDir),
  );
  const engine = pick('engine', 'bubblewrap', given.engine, overrides.engine);
  const placement = pick('placement', 'host-loop-shell', given.placement, overrides.placement);
  const runsPerUser = pick('runsPerUser', 1, runsPerUserOf(given.runsPerUser));
  const harness = pick('harness', 'scripted', given.harness, overrides.harness);
  const gateway = pick('model.gateway', 'scripted', given.model?.gateway);
  const scenarioOf = (where: string, name: string | undefined) => (name === undefined ? undefined : scenarioFrom(where, name));
  const scenario = pick('model.scenario', 'hello', scenarioOf(base, given.model?.scenario), scenarioOf(options.cwd, overrides.scenario));
  const policyDir = given.policy?.dir === undefined ? undefined : resolve(base, given.policy.dir);
  const dir = pick('policy.dir', packageFolder('policies'), policyDir);
  const logInput = pick('policy.logInput', 'redacted', given.policy?.logInput);
  const optionalPath = (path: string, value: string | undefined): string | undefined => {
    if (value !== undefined) lines.push({ path, value: resolve(base, value), source: 'file' });
    return value === undefined ? undefined : resolve(base, value);
  };
  const publicKey = optionalPath('policy.publicKey', given.policy?.publicKey);
  const siteDir = optionalPath('policies.dir', given.policies?.dir);
  const policy = {
    dir,
    logInput,
    ...(publicKey === undefined ? {} : { publicKey }),
    ...(siteDir === undefined ? {} : { siteDir }),
    ...opaSource(given, lines),
  };
  const capacity = defaultCapacity();
  for (const key of Object.keys(capacity) as (keyof typeof capacity)[]) {
    capacity[key] = pick(`capacity.${key}`, capacity[key], given.capacity?.[key]);
  }
  const limits = defaultLimits();
  for (const key of Object.keys(limits) as (keyof typeof limits)[]) limits[key] = pick(`limits.${key}`, limits[key], given.limits?.[key]);
  const ceilings = {
    windowMs: pick('ceilings.windowMs', CEILINGS.windowMs, given.ceilings?.windowMs),
    ...(Object.fromEntries(ACCOUNT_KINDS.map((kind) => [kind, accountCeilings(kind, given.ceilings?.[kind] ?? {}, pick)])) as Record<
      AccountKind,
      Ceilings[AccountKind]
    >),
  };
  const retention = defaultRetention();
  for (const key of Object.keys(retention) as (keyof typeof retention)[])
    retention[key] = pick(`retention.${key}`, retention[key], given.retention?.[key]);
  const faults = [...capacityFaults(capacity), ...retentionFaults(retention, ceilings)];
  if (faults.length > 0) throw new ConfigError('config_malformed', faultText(file ?? '(defaults)', faults));
  const log = { level: pick('log.level', 'info', given.log?.level) };
  const nonLoopback = given.api?.nonLoopback;
  if (nonLoopback !== undefined) lines.push({ path: 'api.nonLoopback', value: nonLoopback, source: 'file' });
  const hosts = given.api?.hosts ?? [];
  if (hosts.length > 0) lines.push({ path: 'api.hosts', value: hosts.join(', '), source: 'file' });
  const api = {
    listen: pick('api.listen', DEFAULT_LISTEN, given.api?.listen, overrides.listen),
    nonLoopback,
    hosts,
    metrics: pick('api.metrics', 'operator', given.api?.metrics),
  };
  const tenants = compileTenants(given.tenants ?? {}, lines);
  const config = { file, profile, stateDir, engine, placement, runsPerUser, harness, model: { gateway, scenario }, policy };
  return { config: deepFreeze({ ...config, capacity, limits, ceilings, retention, tenants, log, api }), lines };
}

function opaSource({ policy }: ConfigFile, lines: ConfigLine[]): Pick<CompiledConfig['policy'], 'opa'> {
  if (policy?.opa === undefined) return {};
  for (const key of ['url', 'sha256'] as const) lines.push({ path: `policy.opa.${key}`, value: policy.opa[key], source: 'file' });
  return { opa: policy.opa };
}

/** The defaults of an account with what the file says over them. */
function accountCeilings(
  kind: AccountKind,
  given: Readonly<Partial<Record<Dimension, number | undefined>>>,
  pick: (path: string, fallback: number, fromFile: number | undefined) => number,
): Ceilings[AccountKind] {
  const named = DIMENSIONS.filter((dimension) => given[dimension] !== undefined || CEILINGS[kind][dimension] !== undefined);
  const value = (dimension: Dimension) =>
    pick(`ceilings.${kind}.${dimension}`, CEILINGS[kind][dimension] ?? Number.MAX_SAFE_INTEGER, given[dimension]);
  return Object.fromEntries(named.map((dimension) => [dimension, value(dimension)]));
}

const runsPerUserOf = (value: ConfigFile['runsPerUser']): number | undefined =>
  value === undefined ? undefined : value === 'serialize' ? 1 : value.parallel;

/** Without a prototype: a tenant or user may be called `constructor`, and a look-up of one that is absent must find nothing. */
function compileTenants(given: NonNullable<ConfigFile['tenants']>, lines: ConfigLine[]): Record<string, TenantConfig> {
  const tenants: Record<string, TenantConfig> = Object.create(null);
  for (const [tenant, { placement, users: givenUsers = {} }] of Object.entries(given)) {
    if (placement !== undefined) lines.push({ path: `tenants.${tenant}.placement`, value: placement, source: 'file' });
    const users: Record<string, { placement: PlacementName | undefined }> = Object.create(null);
    for (const [user, entry] of Object.entries(givenUsers)) {
      users[user] = { placement: entry.placement };
      if (entry.placement !== undefined) {
        lines.push({ path: `tenants.${tenant}.users.${user}.placement`, value: entry.placement, source: 'file' });
      }
    }
    tenants[tenant] = { placement, users };
  }
  return tenants;
}

/** A folder of this package. It lies beside the sources in development, and the build copies it beside the emitted code. */
export const packageFolder = (name: string): string => join(dirname(dirname(fileURLToPath(import.meta.url))), name);

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}
