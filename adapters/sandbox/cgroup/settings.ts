import type { SandboxLimits } from '../../../core/config.ts';
import type { CgroupPlace } from './places.ts';

/** A file of a group and what is written there, in this order. `optional`: kernels without it have nothing to bound there. */
export interface Setting {
  readonly file: string;
  readonly value: string;
  readonly optional?: true;
}

const MiB = 1024 * 1024;
const PERIOD_US = 100_000;

/** What the group of one sandbox says, for the controllers of its place. Its weight stays that of one process of ours, however many run in it. */
export function groupSettings({ version, controllers }: CgroupPlace, limits: SandboxLimits): Setting[] {
  const memory = String(limits.memoryMiB * MiB);
  const quota = String(Math.round(limits.cpus * PERIOD_US));
  const all: { readonly [Name in CgroupPlace['controllers'][number]]: readonly Setting[] } =
    version === 1
      ? {
          // Swap after memory: the sum may not be less than its part.
          memory: [
            { file: 'memory.limit_in_bytes', value: memory },
            { file: 'memory.memsw.limit_in_bytes', value: memory, optional: true },
          ],
          pids: [{ file: 'pids.max', value: String(limits.pids) }],
          cpu: [
            { file: 'cpu.cfs_period_us', value: String(PERIOD_US) },
            { file: 'cpu.cfs_quota_us', value: quota },
          ],
        }
      : {
          memory: [
            { file: 'memory.max', value: memory },
            { file: 'memory.swap.max', value: '0', optional: true },
          ],
          pids: [{ file: 'pids.max', value: String(limits.pids) }],
          cpu: [{ file: 'cpu.max', value: `${quota} ${PERIOD_US}` }],
        };
  return controllers.flatMap((name) => all[name]);
}
