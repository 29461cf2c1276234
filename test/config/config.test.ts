import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../adapters/config/file.ts';
import { CAPACITY_RANGE, CONFIG_FILE_BYTES } from '../../adapters/config/schema.ts';
import { explainConfig, loadConfig } from '../../adapters/config.ts';
import { placementFor } from '../../core/config.ts';
import { ConfigError } from '../../core/errors.ts';
import { CAPACITY, CEILINGS } from '../../core/limits.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'outwork-config-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const env = (more: Record<string, string> = {}) => ({ HOME: join(cwd, 'home'), ...more });
const write = (text: string | Uint8Array, name = 'outwork.yaml') => {
  const file = join(cwd, name);
  writeFileSync(file, text);
  return file;
};
const faultOf = (run: () => unknown): ConfigError => {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
};
const refusal = (text: string | Uint8Array) => {
  write(text);
  return faultOf(() => loadConfig({ env: env(), cwd }));
};

describe('loadConfig', () => {
  it('without a file gives the defaults, frozen all the way down', () => {
    const config = loadConfig({ env: env(), cwd });
    expect(config).toMatchObject({ file: undefined, profile: 'development', engine: 'bubblewrap', runsPerUser: 1, capacity: CAPACITY });
    expect(config.stateDir).toBe(join(cwd, 'home', '.local', 'state', 'outwork'));
    expect(Object.isFrozen(config) && Object.isFrozen(config.capacity) && Object.isFrozen(config.tenants)).toBe(true);
  });

  it('searches --config, OUTWORK_CONFIG, the working directory and XDG_CONFIG_HOME, in this order', () => {
    mkdirSync(join(cwd, 'xdg', 'outwork'), { recursive: true });
    const xdg = write('runsPerUser: {parallel: 2}', 'xdg/outwork/outwork.yaml');
    const where = env({ XDG_CONFIG_HOME: join(cwd, 'xdg') });
    expect(loadConfig({ env: where, cwd })).toMatchObject({ file: xdg, runsPerUser: 2 });
    const local = write('runsPerUser: {parallel: 3}');
    expect(loadConfig({ env: where, cwd })).toMatchObject({ file: local, runsPerUser: 3 });
    const named = write('runsPerUser: {parallel: 4}', 'named.yaml');
    expect(loadConfig({ env: { ...where, OUTWORK_CONFIG: named }, cwd })).toMatchObject({ file: named, runsPerUser: 4 });
    write('runsPerUser: {parallel: 5}', 'flag.yaml');
    expect(loadConfig({ file: 'flag.yaml', env: { ...where, OUTWORK_CONFIG: named }, cwd }).runsPerUser).toBe(5);
  });

  it('a named file that is missing refuses; it does not fall through to the next one', () => {
    write('runsPerUser: serialize');
    expect(faultOf(() => loadConfig({ file: 'absent.yaml', env: env(), cwd })).code).toBe('config_unreadable');
    expect(faultOf(() => loadConfig({ env: env({ OUTWORK_CONFIG: join(cwd, 'absent') }), cwd })).code).toBe('config_unreadable');
    expect(faultOf(() => loadConfig({ file: '.', env: env(), cwd })).code).toBe('config_unreadable');
  });

  it('switching the placement is one line, with exceptions per tenant and user', () => {
    write(
      'placement: persistent-per-user\ntenants:\n  acme:\n    placement: disposable-per-run\n    users: {ann: {placement: host-loop-shell}}\n',
    );
    const config = loadConfig({ env: env(), cwd });
    expect(placementFor(config, { tenant: 'other', user: 'bob' })).toBe('persistent-per-user');
    expect(placementFor(config, { tenant: 'acme', user: 'bob' })).toBe('disposable-per-run');
    expect(placementFor(config, { tenant: 'acme', user: 'ann' })).toBe('host-loop-shell');
  });

  it('a tenant or user named like a property of every object finds no entry', () => {
    write('tenants: {acme: {users: {ann: {}}}}');
    const config = loadConfig({ env: env(), cwd });
    expect(placementFor(config, { tenant: 'constructor', user: 'constructor' })).toBe(config.placement);
    expect(placementFor(config, { tenant: 'acme', user: 'constructor' })).toBe(config.placement);
  });

  it('says of every value where it came from', () => {
    write('harness: scripted\ncapacity: {leaseMs: 40000}');
    const { lines } = explainConfig({ env: env(), cwd, stateDir: 'state', overrides: { scenario: 'survey' } });
    const source = Object.fromEntries(lines.map((line) => [line.path, line.source]));
    expect(source).toMatchObject({ harness: 'file', 'capacity.leaseMs': 'file', 'capacity.heartbeatMs': 'default', profile: 'default' });
    expect(source).toMatchObject({ stateDir: 'command line', 'model.scenario': 'command line' });
  });

  it('reads paths in the file relative to the file', () => {
    mkdirSync(join(cwd, 'etc'));
    write('stateDir: st\npolicy: {dir: rules}', 'etc/outwork.yaml');
    const config = loadConfig({ file: 'etc/outwork.yaml', env: env(), cwd });
    expect([config.stateDir, config.policy.dir]).toEqual([join(cwd, 'etc', 'st'), join(cwd, 'etc', 'rules')]);
  });

  it('reads a scenario in the file relative to the file, one of the command line relative to the working directory, and a name as a name', () => {
    mkdirSync(join(cwd, 'etc'));
    write('model: {scenario: ./mine.json}', 'etc/outwork.yaml');
    const scenarioOf = (overrides = {}) => loadConfig({ file: 'etc/outwork.yaml', env: env(), cwd, overrides }).model.scenario;
    expect(scenarioOf()).toBe(join(cwd, 'etc', 'mine.json'));
    expect(scenarioOf({ scenario: 'mine.json' })).toBe(join(cwd, 'mine.json'));
    expect(scenarioOf({ scenario: 'survey' })).toBe('survey');
  });
});

describe('retention', () => {
  it('is in days, 30 and 90 unless said otherwise, and is shown', () => {
    expect(loadConfig({ env: env(), cwd }).retention).toEqual({ decisionDays: 30, threadDays: 90 });
    const { config, lines } = explainConfig({ file: write('retention: {threadDays: 7}'), env: env(), cwd });
    expect(config.retention).toEqual({ decisionDays: 30, threadDays: 7 });
    expect(lines).toContainEqual({ path: 'retention.threadDays', value: 7, source: 'file' });
    expect(lines).toContainEqual({ path: 'retention.decisionDays', value: 30, source: 'default' });
  });

  it.each(['decisionDays: 0', 'threadDays: 0', 'threadDays: -1', 'threadDays: 1.5', 'threadDays: 36501', 'threadDays: forever', 'days: 1'])(
    'nothing else: %s',
    (text) => {
      expect(refusal(`retention: {${text}}`).code).toMatch(/^config_(malformed|unknown_key)$/);
    },
  );

  it('is not shorter than what ceilings look back to', () => {
    expect(refusal('retention: {threadDays: 1}\nceilings: {windowMs: 86400001}').message).toContain('retention.threadDays:');
    const file = write('retention: {threadDays: 1}\nceilings: {windowMs: 86400000}');
    expect(loadConfig({ file, env: env(), cwd }).retention?.threadDays).toBe(1);
  });
});

describe('ceilings', () => {
  it('a dimension that is named replaces its default, one that has none is added, the rest stay', () => {
    expect(loadConfig({ env: env(), cwd }).ceilings).toEqual(CEILINGS);
    const { ceilings } = loadConfig({
      file: write('ceilings: {windowMs: 1000, user: {processes: 2}, thread: {tokens: 5}}'),
      env: env(),
      cwd,
    });
    expect(ceilings).toEqual({
      ...CEILINGS,
      windowMs: 1000,
      user: { ...CEILINGS.user, processes: 2 },
      thread: { ...CEILINGS.thread, tokens: 5 },
    });
  });

  it.each(['user: {procesess: 1}', 'user: {processes: -1}', 'user: {processes: 1.5}', 'group: {processes: 1}', 'windowMs: 0'])(
    '%s is refused',
    (text) => {
      expect(refusal(`ceilings: {${text}}`).code).toMatch(/^config_/);
    },
  );
});

describe('a bad file refuses to start', () => {
  it('unknown keys are named with their path', () => {
    const error = refusal('plcement: host-loop-shell\ncapacity: {leasMs: 1}');
    expect(error.code).toBe('config_unknown_key');
    expect(error.message).toContain('plcement: unknown key');
    expect(error.message).toContain('capacity.leasMs: unknown key');
  });

  it('all faults are listed at once', () => {
    const error = refusal('engine: podman\nrunsPerUser: 0\nextra: 1\ntenants: {"A B": {}}');
    expect(error.code).toBe('config_malformed');
    for (const path of ['engine:', 'runsPerUser:', 'extra: unknown key', 'tenants.A B:']) expect(error.message).toContain(path);
  });

  it.each([
    ['an engine that is not built', 'engine: docker'],
    ['a harness that is not built', 'harness: acme'],
    ['a duplicated key', 'engine: bubblewrap\nengine: bubblewrap'],
    ['a duplicated key below', 'model: {scenario: a, scenario: b}'],
    [
      'an anchor bomb',
      `a: &a [x,x]\n${'bcdefghij'.replace(/./g, (c) => `${c}: &${c} [*${String.fromCharCode(c.charCodeAt(0) - 1)},*${String.fromCharCode(c.charCodeAt(0) - 1)}]\n`)}`,
    ],
    ['one harmless alias', 'harness: &h scripted\nmodel: {scenario: *h}'],
    ['a merge key', 'model: {<<: {scenario: x}}'],
    ['a language tag', 'harness: !!js/function "x"'],
    ['an unknown tag', 'harness: !secret x'],
    ['two documents', 'engine: docker\n---\nengine: bubblewrap'],
    ['a list', '- engine'],
    ['a bare word', 'engine'],
    ['brackets that end the stack', '['.repeat(200_000)],
    ['nesting that ends the stack', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['broken YAML', 'engine: [docker'],
    ['a tab as indentation', 'model:\n\tscenario: x'],
    ['a number as text', 'stateDir: 12'],
    ['text as a number', 'capacity: {leaseMs: "30000"}'],
    ['a fraction', 'capacity: {leaseMs: 30000.5}'],
    ['not a number', 'capacity: {leaseMs: .nan}'],
    ['null for a value', 'engine: null'],
    ['a key that is not text', '1: 2'],
    ['__proto__ at the root', '__proto__: {engine: docker}'],
    ['__proto__ below', 'capacity: {__proto__: {leaseMs: 1}}'],
    ['__proto__ as a tenant', 'tenants: {__proto__: {placement: host-loop-shell}}'],
    ['a NUL in a path', 'stateDir: "a\\0b"'],
  ])('%s', (_name, text) => {
    expect(refusal(text).code).toMatch(/^config_(malformed|unknown_key)$/);
  });

  it('text that is not UTF-8', () => {
    expect(refusal(Buffer.concat([Buffer.from('harness: '), Buffer.from([0xff, 0xfe])])).code).toBe('config_malformed');
  });

  it('a file over the size bound, before it is read', () => {
    const file = write('');
    truncateSync(file, CONFIG_FILE_BYTES + 1);
    expect(faultOf(() => loadConfig({ env: env(), cwd })).code).toBe('config_unreadable');
  });

  it('capacities outside of their range, and those that do not fit each other', () => {
    for (const [key, [low, high]] of Object.entries(CAPACITY_RANGE)) {
      expect(refusal(`capacity: {${key}: ${high + 1}}`).message).toContain(`capacity.${key}:`);
      expect(refusal(`capacity: {${key}: ${low - 1}}`).message).toContain(`capacity.${key}:`);
    }
    expect(refusal('capacity: {leaseMs: 5000}').message).toContain('capacity.heartbeatMs:');
    expect(refusal('capacity: {commandTimeoutMs: 700000}').message).toContain('capacity.commandTimeoutMs:');
  });

  it('any text gives a value or a ConfigError, never another error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: fc.constantFrom(...'a:{}[]&*!|>-"\'\n #?,%@0<') })), (text) => {
        try {
          parseConfig(text, 'x');
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

it('every default lies within its range', () => {
  for (const [key, [low, high]] of Object.entries(CAPACITY_RANGE)) {
    const value = CAPACITY[key as keyof typeof CAPACITY];
    expect(value >= low && value <= high, key).toBe(true);
  }
});

describe('policy', () => {
  it('paths are taken from the file’s own place; what is not said is not there', () => {
    const dir = mkdtempSync(join(tmpdir(), 'outwork-config-policy-'));
    try {
      const file = join(dir, 'outwork.yaml');
      writeFileSync(file, 'policy: { publicKey: key.pem, logInput: digest }\npolicies: { dir: rules }\n');
      const { policy } = loadConfig({ file, env: {}, cwd: '/' });
      expect(policy).toMatchObject({ publicKey: join(dir, 'key.pem'), siteDir: join(dir, 'rules'), logInput: 'digest' });
      writeFileSync(file, '');
      const { policy: plain } = loadConfig({ file, env: {}, cwd: '/' });
      expect([plain.logInput, plain.publicKey, plain.siteDir]).toEqual(['redacted', undefined, undefined]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
