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
  const [programs, requests] = [programProbes(now, next), egressProbes(now, next)];
  const probes = [
    ...capabilityProbes(),
    ...placementProbes(now, next),
    ...approvalProbes(),
    ...programs.probes,
    ...requests.probes,
    ...triggerProbes(),
  ];
  return {
    probes: [...new Map(probes.map((probe) => [probe.note, probe])).values()],
    unasked: [...programs.unasked, ...requests.unasked],
  };
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

/** More questions than this about one list are not asked. */
const MOST = 400;

/**
 * Commands about what two versions of the data name differently. What could allow more (a denial or a launcher that is gone, a pattern or a
 * variable that is new) is asked first, and a list of which not all that is asked is told as such.
 */
function programProbes(now: unknown, next: unknown): Probes {
  const unasked: string[] = [];
  const asked = <Item>(
    about: string,
    wider: readonly Item[],
    narrower: readonly Item[],
    ask: (item: Item) => readonly Probe[],
  ): Probe[] => {
    const more = wider.flatMap(ask);
    if (more.length > MOST) unasked.push(`data/${about}`);
    return [...more.slice(0, MOST), ...narrower.slice(0, MOST).flatMap(ask)];
  };
  const names = (settings: unknown, ...path: readonly string[]) => textsAt(settings, ...path);
  const [programs, launchers] = [['call', 'denied_programs'] as const, ['call', 'launchers'] as const];
  const [gone, more] = differences(names(now, ...programs), names(next, ...programs));
  const [lost, found] = differences(names(now, ...launchers), names(next, ...launchers));
  const [fewer, patterns] = differences(patternTexts(now), patternTexts(next));
  const [hidden, shown] = differences(names(now, 'effects', 'plain_env'), names(next, 'effects', 'plain_env'));
  const denied = [...new Set([...names(now, ...programs), ...names(next, ...programs)])];
  const reviewed = [...new Set([...patternTexts(now), ...patternTexts(next)])].map(patternOf);
  const probes = [
    ...asked('call.yaml denied_programs', gone, more, (program) => [
      command([program]),
      command(['sh', '-c', program]),
      command(['env', program]),
    ]),
    ...asked('call.yaml launchers', lost, found, (launcher) => [
      command([launcher]),
      ...denied.slice(0, 1).map((program) => command([launcher, program])),
    ]),
    ...asked('effects.yaml programs', patterns, fewer, (text) => patternCommands(patternOf(text)).map((argv) => command(argv))),
    // Of each reviewed command: one that is denied, or is none any more, would say nothing of the others.
    ...asked('effects.yaml plain_env', shown, hidden, (name) =>
      reviewed.map(([program, { words = [] }]) => command([program, ...words], { env: [name] })),
    ),
  ];
  return { probes, unasked };
}

/** What only the first list has, and what only the second has. */
function differences(before: readonly string[], after: readonly string[]): readonly [gone: readonly string[], added: readonly string[]] {
  const [a, b] = [new Set(before), new Set(after)];
  return [[...a].filter((item) => !b.has(item)), [...b].filter((item) => !a.has(item))];
}

const patternOf = (text: string): readonly [program: string, pattern: Pattern] => JSON.parse(text);

interface Pattern {
  readonly words?: readonly string[];
  readonly flags?: string;
  readonly options?: readonly string[];
  readonly prefixes?: readonly string[];
}

/** The command a pattern admits bare, and once with each thing that it admits. */
function patternCommands([program, { words = [], flags = '', options = [], prefixes = [] }]: readonly [string, Pattern]): string[][] {
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
