import { ConfigError } from '../../../core/errors.ts';
import type { Check } from '../check.ts';
import { type CgroupSources, findCgroups } from './find.ts';

/** What mends it, by the version of the control groups. In version 1 only root can give a group away. */
const FIX = {
  1: 'as root, for each D of memory, pids and cpu: mkdir D/outwork; chown USER D/outwork D/outwork/cgroup.procs; echo PID >D/outwork/cgroup.procs, where PID starts the kernel',
  2: 'start the kernel in a delegated group: systemd-run --user --scope -p Delegate=yes outwork serve',
} as const;

/** Which limits of a sandbox this machine lets us enforce; each that it does not is a warning. */
export async function checkCgroups(sources?: CgroupSources): Promise<Check[]> {
  const { places, bounded, missing, version } = await findCgroups(sources);
  const found = bounded.map((name) => {
    const place = places.find(({ controllers }) => controllers.includes(name));
    return { id: `limits.${name}`, ok: true, detail: `cgroup v${place?.version}, ${place?.dir}` };
  });
  const faults = missing.map((text) => {
    const name = text.slice(0, text.indexOf(':'));
    return { id: `limits.${name}`, ok: false, detail: `cannot be bounded: ${text}`, fix: FIX[version], warning: true } as const;
  });
  return [...found, ...faults];
}

/**
 * In production one user may not be able to take the machine from another: memory and processes must be bounded.
 *
 * @throws ConfigError `limits_unenforceable`
 */
export async function requireLimits(sources?: CgroupSources): Promise<void> {
  const { bounded, missing, version } = await findCgroups(sources);
  if (bounded.includes('memory') && bounded.includes('pids')) return;
  throw new ConfigError('limits_unenforceable', `profile production: sandboxes cannot be bounded here (${missing.join('; ')})`, {
    hint: FIX[version],
  });
}
