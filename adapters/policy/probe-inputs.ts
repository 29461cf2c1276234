import { CAPABILITIES } from '../../core/capability/types.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { egressProbes } from './egress-probes.ts';
import { PROBE_IDENTITY, PROBE_SEAT, type Probe, type Probes, textsAt, valueAt } from './probe.ts';

/**
 * Questions about everything that two versions of the data name, in their Rego form: each capability for each caller, each program,
 * pattern and option, each placement and reviewed row, each approver, each listed host, each way to make a trigger. A change of data that
 * widens shows in one of them, whether or not anybody has asked it yet.
 *
 * @param now - `data.settings` that runs
 * @param next - `data.settings` that is to run
 */
export function probeInputs(now: unknown, next: unknown): Probes {
  const requests = egressProbes(now, next);
  const probes = [
    ...capabilityProbes(),
    ...placementProbes(now, next),
    ...approvalProbes(),
    ...programProbes(now, next),
    ...requests.probes,
    ...triggerProbes(),
  ];
  return { ...requests, probes: [...new Map(probes.map((probe) => [probe.note, probe])).values()] };
}

function call(note: string, change: Readonly<Record<string, unknown>>): Probe {
  const facts = { calls_used: 0, calls_left: 1, wall_ms_left: 1, sandbox_origins: ['interactive'], other_actors: [], args_digest: '' };
  const none = { credential: 'none', recipe: '' };
  return { note, input: { ...PROBE_IDENTITY, ...PROBE_SEAT, ...facts, ...none, kind: 'call', caller: 'executor', ...change } };
}

interface CommandChange {
  readonly env?: readonly string[];
  readonly sandbox_origins?: readonly string[];
  readonly credential?: 'present';
  readonly recipe?: string;
  readonly other_actors?: readonly string[];
}

function command(argv: readonly string[], change: CommandChange = {}): Probe {
  const { env = [], ...rest } = change;
  const args = { argv, argv_length: argv.length, cwd: '.', env, stdin_bytes: 0, background: false };
  const note = `${argv.join(' ')}${env.length === 0 ? '' : ` with ${env.join(', ')}`}${circumstancesOf(rest)}`;
  return call(`shell.exec: ${note}`, { capability: 'shell.exec', effect_class: 'once', args, ...rest });
}

const circumstancesOf = ({ sandbox_origins, credential, other_actors = [] }: CommandChange): string =>
  [
    sandbox_origins === undefined ? '' : ' after a trigger',
    credential === undefined ? '' : ' with a credential',
    other_actors.length === 0 ? '' : ' beside text of others',
  ].join('');

function capabilityProbes(): Probe[] {
  const plain = CAPABILITIES.filter((name) => name !== 'shell.exec');
  return [
    command(['outwork-probe'], { sandbox_origins: ['interactive', 'trigger'] }),
    command(['outwork-probe'], { credential: 'present', recipe: 'outwork-probe' }),
    command(['outwork-probe'], { credential: 'present', recipe: 'outwork-probe', other_actors: ['other'] }),
    ...['executor', 'product', 'operator'].flatMap((caller) => [
      ...plain.map((capability) => call(`${capability} by ${caller}`, { capability, caller, effect_class: 'pure', args: {} })),
      call(`shell.exec by ${caller}`, { ...command(['outwork-probe']).input, caller }),
    ]),
  ];
}

function placementProbes(now: unknown, next: unknown): Probe[] {
  const harnesses = new Set([
    'outwork-probe',
    ...textsAt(now, 'placement', 'own_harnesses'),
    ...textsAt(next, 'placement', 'own_harnesses'),
  ]);
  const seats = [
    ...PLACEMENTS.map((placement) => ({ ...PROBE_SEAT, placement })),
    ...[...rows(now, 'placement', 'reviewed'), ...rows(next, 'placement', 'reviewed')],
  ];
  return seats.flatMap((seat) =>
    [...harnesses].flatMap((harness) =>
      ['development', 'production'].map((profile) => ({
        note: `placement: ${JSON.stringify([seat.placement, seat.engine, seat.wall])} ${harness} in ${profile}`,
        input: { ...PROBE_IDENTITY, ...PROBE_SEAT, ...seat, kind: 'placement', harness, profile },
      })),
    ),
  );
}

function approvalProbes(): Probe[] {
  const question = {
    ...PROBE_IDENTITY,
    kind: 'approval',
    approval: '',
    capability: 'shell.exec',
    effect_class: 'once',
    args: {},
    fingerprint: '',
  };
  return ['probe', 'other'].flatMap((user) =>
    ['user', 'approver', 'operator', 'policy'].flatMap((role) =>
      ['approve', 'deny'].map((answer) => ({
        note: `approval: ${answer} by ${user === 'probe' ? 'the actor' : 'another'}, ${role}`,
        input: { ...question, answer, approver: { user, roles: [role] } },
      })),
    ),
  );
}

function triggerProbes(): Probe[] {
  const question = { ...PROBE_IDENTITY, kind: 'trigger', body_digest: '' };
  return ['create', 'delete'].flatMap((action) =>
    ['executor', 'product', 'operator'].flatMap((caller) =>
      ['schedule', 'webhook'].flatMap((source) =>
        ['interactive', 'trigger'].flatMap((origin) =>
          ['probe', 'other'].map((user) => ({
            note: `trigger: ${action} ${source} by ${caller} in a run of ${origin} for ${user === 'probe' ? 'the actor' : 'another'}`,
            input: { ...question, action, caller, source, origin, schedule: '', scope: { ...PROBE_IDENTITY.scope, user } },
          })),
        ),
      ),
    ),
  );
}

/** More than this of one list is not asked; the table rows and the recorded decisions still are. */
const MOST = 400;

function programProbes(now: unknown, next: unknown): Probe[] {
  const changed = <Item>(read: (settings: unknown) => readonly Item[]): Item[] => {
    const [a, b] = [new Set(read(now)), new Set(read(next))];
    return [...new Set([...a].filter((item) => !b.has(item)).concat([...b].filter((item) => !a.has(item))))].slice(0, MOST);
  };
  const denied = [...new Set([...textsAt(now, 'call', 'denied_programs'), ...textsAt(next, 'call', 'denied_programs')])];
  const swapped = changed((settings) => textsAt(settings, 'call', 'denied_programs'));
  const launchers = changed((settings) => textsAt(settings, 'call', 'launchers'));
  const patterns = changed((settings) => patternTexts(settings)).map((text) => JSON.parse(text) as [string, Pattern]);
  const environment = changed((settings) => textsAt(settings, 'effects', 'plain_env'));
  return [
    ...swapped.flatMap((program) => [command([program]), command(['sh', '-c', program]), command(['env', program])]),
    ...launchers.flatMap((launcher) => [command([launcher]), ...denied.slice(0, 1).map((program) => command([launcher, program]))]),
    ...patterns.flatMap(([program, pattern]) => patternCommands(program, pattern).map((argv) => command(argv))),
    ...environment.map((name) => command(['ls'], { env: [name] })),
  ];
}

interface Pattern {
  readonly words?: readonly string[];
  readonly flags?: string;
  readonly options?: readonly string[];
  readonly prefixes?: readonly string[];
}

/** The command a pattern admits bare, and once with each thing that it admits. */
function patternCommands(program: string, { words = [], flags = '', options = [], prefixes = [] }: Pattern): string[][] {
  const further = ['outwork-probe', ...[...flags].map((flag) => `-${flag}`), ...options, ...prefixes.map((prefix) => `${prefix}x`)];
  return [[program, ...words], ...further.map((one) => [program, ...words, one])];
}

function patternTexts(settings: unknown): string[] {
  const programs = valueAt(settings, 'effects', 'programs');
  if (programs === null || typeof programs !== 'object') return [];
  return Object.entries(programs).flatMap(([program, list]) =>
    Array.isArray(list) ? list.map((pattern) => JSON.stringify([program, pattern])) : [],
  );
}

function rows(settings: unknown, ...path: readonly string[]): readonly Record<string, string>[] {
  const value = valueAt(settings, ...path);
  return Array.isArray(value) ? value.filter((item) => item !== null && typeof item === 'object') : [];
}
