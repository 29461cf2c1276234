import { UsageError } from '../../../core/errors.ts';
import type { Check } from '../../sandbox/check.ts';
import { COMPONENTS, type ComponentName, checkComponent, requiredComponents } from '../components.ts';
import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import { machine } from '../setup/host.ts';
import { printTable } from '../table.ts';

/** A check, and whether this machine must pass it. */
export interface DoctorLine extends Check {
  readonly required: boolean;
}

/** Needed by every kernel; the rest only for editing policies and for tests. */
const ALWAYS: ReadonlySet<ComponentName> = new Set(['node', 'git', 'guest', 'policy', 'state']);
/** Looked at only when `OUTWORK_REQUIRE` names them. */
const ON_REQUEST: ReadonlySet<ComponentName> = new Set(['go', 'chromium', 'tools']);

/**
 * Checks this machine: a table, and of what is missing the command that mends it. Exit code 3 when something required is missing;
 * `OUTWORK_REQUIRE` (a comma list of components) makes more required.
 */
export async function doctor(context: CommandContext): Promise<number> {
  const { out, io } = context;
  const config = configOf(context);
  const { known, unknown } = requiredComponents(io.env.OUTWORK_REQUIRE);
  if (unknown.length > 0) {
    throw new UsageError('invalid_argument', `OUTWORK_REQUIRE: unknown component ${unknown.join(', ')}`, { hint: COMPONENTS.join(', ') });
  }
  const isRequired = (name: ComponentName) =>
    ALWAYS.has(name) || known.includes(name) || name === config.engine || (name === 'limits' && config.profile === 'production');
  const host = machine(io.env);
  const { stateDir, policy, limits } = config;
  const scope = { host, stateDir, policyDir: policy.dir, siteDir: policy.siteDir, diskReserveMiB: limits.diskReserveMiB };
  // Docker is an option: where it is installed it is looked at, where it is not nothing is missing.
  const looked = COMPONENTS.filter(
    (name) => known.includes(name) || !(ON_REQUEST.has(name) || (name === 'docker' && host.which(name) === undefined)),
  );
  const lines: DoctorLine[] = [];
  for (const name of looked) {
    const required = isRequired(name);
    for (const check of await checkComponent(name, scope)) lines.push({ ...check, required });
  }
  const ok = lines.every((line) => line.ok || !line.required);
  if (out.json) out.document({ ok, checks: lines });
  else print(context, lines);
  return ok ? EXIT.good : EXIT.missing;
}

const word = (line: DoctorLine): string => (line.ok ? 'ok' : line.required ? 'MISSING' : line.warning ? 'WARNING' : 'absent');

function print({ out }: CommandContext, lines: readonly DoctorLine[]): void {
  const columns = [
    { title: 'CHECK', value: (line: DoctorLine) => line.id },
    { title: 'STATE', value: word, style: (line: DoctorLine) => (line.ok ? 'green' : line.required ? 'red' : 'dim') },
    { title: 'DETAIL', value: (line: DoctorLine) => line.detail },
  ] as const;
  printTable(out, columns, lines, '');
  for (const line of lines) {
    if (!line.ok && line.fix !== undefined) out.line({ text: `${line.id}: `, style: 'bold' }, line.fix);
  }
}
