import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configFileSchema } from '../../adapters/config/schema.ts';
import type { CompiledConfig } from '../../core/config.ts';
import type { RunView } from '../../core/kernel.ts';
import { PLACEMENTS, type PlacementName } from '../../core/run/types.ts';
import { commandsOf, scenario } from '../support/e2e.ts';
import { runOutwork } from '../support/launcher.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-profile-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function outwork(args: readonly string[], more: { readonly config?: object; readonly env?: Record<string, string> } = {}) {
  // JSON is YAML.
  if (more.config !== undefined) writeFileSync(join(dir, 'outwork.yaml'), JSON.stringify(more.config));
  return runOutwork(dir, args, more.env);
}
const run = (placement: PlacementName) => ['run', '--user', 'ann', '--placement', placement, 'go'];
const codeOf = (stdout: string): unknown => (JSON.parse(stdout) as { error?: { code: string } }).error?.code;

type Profile = CompiledConfig['profile'];

/** What each profile does on a machine whose placements nobody has reviewed. A profile without a line here does not compile. */
const ARMS: Readonly<Record<Profile, { readonly status: number; readonly failure?: RegExp }>> = {
  development: { status: 0 },
  // Where memory and processes cannot be bounded the kernel does not even start.
  production: { status: 4, failure: /placement_not_reviewed|limits_unenforceable/ },
};
const PROFILES = Object.keys(ARMS) as Profile[];

describe('finding 10: profiles', () => {
  it('all that the configuration knows have a case here', () => {
    expect([...configFileSchema.shape.profile.unwrap().options].sort()).toEqual([...PROFILES].sort());
  });

  it.each(PROFILES.flatMap((profile) => PLACEMENTS.map((placement) => ({ profile, placement }))))(
    '$profile under $placement does what is said of it, through the command line',
    ({ profile, placement }) => {
      expect(outwork(['user', 'add', 'ann'], { config: {} }).status).toBe(0);
      const { status, failure } = ARMS[profile];
      const done = outwork(run(placement), { config: { profile } });
      expect(done.status, done.stderr).toBe(status);
      if (failure === undefined) return;
      expect(done.stderr).toMatch(failure);
      const made = JSON.parse(outwork(['runs', 'ls', '--json']).stdout) as RunView['run'][];
      expect(made.every(({ state }) => state === 'failed')).toBe(true);
    },
  );

  it.each(PROFILES)('%s with a key that it is told to use and that is not there starts nothing', (profile) => {
    expect(outwork(['user', 'add', 'ann'], { config: {} }).status).toBe(0);
    const refused = outwork([...run('persistent-per-user'), '--json'], { config: { profile, policy: { publicKey: 'none.pem' } } });
    expect(refused.status, refused.stdout).toBe(4);
    expect(codeOf(refused.stdout)).toMatch(/^(?:policy|config)_/);
    expect(JSON.parse(outwork(['runs', 'ls', '--json'], { config: {} }).stdout)).toEqual([]);
  });

  it.each(['', 'Production', 'prod', 'none'])('%j is no profile, and no other is taken for it', (profile) => {
    const refused = outwork([...run('persistent-per-user'), '--json'], { config: { profile } });
    expect({ status: refused.status, code: codeOf(refused.stdout) }).toEqual({ status: 4, code: 'config_malformed' });
  });
});

const PROXY = 'http://192.0.2.1:3128';
/** Every variable by which programs are told of a proxy, and names that one might think of here. */
const VARIABLES = Object.fromEntries(
  [
    'http_proxy',
    'https_proxy',
    'all_proxy',
    'ftp_proxy',
    'outwork_proxy',
    'outwork_network',
    'outwork_egress',
    'sandbox_http_proxy_url',
  ].flatMap((name) => [
    [name, PROXY],
    [name.toUpperCase(), PROXY],
  ]),
);

/** Every setting at something other than its default; those that only say where files lie are left out. */
const EVERYTHING = {
  profile: 'development',
  engine: 'bubblewrap',
  placement: 'disposable-per-run',
  runsPerUser: { parallel: 4 },
  harness: 'scripted',
  model: { gateway: 'scripted' },
  policy: { logInput: 'digest' },
  capacity: { concurrentRuns: 3 },
  limits: { pids: 1024, memoryMiB: 1024 },
  ceilings: { windowMs: 60_000, user: { egressBytes: 1_000_000_000 } },
  log: { level: 'warn' },
  retention: { decisionDays: 31 },
  api: { listen: '0.0.0.0:0', nonLoopback: 'a test of every setting', hosts: ['example.test'], metrics: 'open' },
  tenants: { default: { placement: 'persistent-per-user' } },
} as const;
const FILES = ['stateDir', 'policies'];

describe('finding 11: the network of a sandbox', () => {
  it('every setting is among those that are tried', () => {
    expect([...Object.keys(EVERYTHING), ...FILES].sort()).toEqual(Object.keys(configFileSchema.shape).sort());
  });

  it.each(PLACEMENTS)(
    'has no interface but loopback under %s, whatever is set, in the file and in the kernel’s environment',
    (placement) => {
      const look = scenario('look', [['sh', '-c', "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; env | grep -ic proxy"]]);
      const config = { ...EVERYTHING, model: { ...EVERYTHING.model, scenario: look } };
      expect(outwork(['user', 'add', 'ann'], { config }).status).toBe(0);
      const done = outwork([...run(placement), '--json'], { config, env: VARIABLES });
      expect(done.status, done.stderr).toBe(0);
      const { run: made } = JSON.parse(done.stdout) as Pick<RunView, 'run'>;
      const view = JSON.parse(outwork(['runs', 'show', made.id, '--json']).stdout) as RunView;
      expect(commandsOf(view)[0]?.stdout).toBe('lo\n0\n');
    },
  );
});
