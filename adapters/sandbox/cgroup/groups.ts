import { readFileSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxLimits } from '../../../core/config.ts';
import { SandboxError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import { type CgroupSources, findCgroups, pidsIn, SYSTEM_CGROUPS } from './find.ts';
import type { CgroupPlace, Controller } from './places.ts';
import { groupSettings } from './settings.ts';

const REMOVE_TRIES = 200;
const REMOVE_PAUSE_MS = 5;

const PIDS_FILE = 'pids.events';
const OOM_FILE = { 1: 'memory.oom_control', 2: 'memory.events' } as const;

/** The control groups of one sandbox, one directory per hierarchy. */
export interface SandboxGroup {
  readonly dirs: readonly string[];
  /** Moves a process into it; what it starts later is born there. @throws SandboxError `start_failed` */
  add(pid: number): Promise<void>;
  /** Processes that the system has ended for want of memory. */
  oomKills(): number;
  /** Processes that could not be made because the group has as many as it may. */
  refusedProcesses(): number;
}

export interface Cgroups {
  readonly bounded: readonly Controller[];
  /** Makes the groups of one sandbox, with its limits in force. @throws SandboxError `start_failed` */
  make(generation: string): Promise<SandboxGroup>;
  /** Directories of a generation's groups, made or not. */
  dirsOf(generation: string): readonly string[];
  /** Removes groups whose processes are gone; waits a moment for the last one. */
  remove(dirs: readonly string[]): Promise<void>;
}

/**
 * Takes what this machine lets us use: version 1 or 2, all three controllers, some or none; `bounded` tells. Of version 2 the processes of
 * our own group move into a leaf first, because a group with processes cannot bound groups below it.
 */
export async function openCgroups(limits: SandboxLimits, clock: Clock, sources: CgroupSources = SYSTEM_CGROUPS): Promise<Cgroups> {
  const { places, bounded } = await findCgroups(sources);
  for (const place of places) if (place.version === 2) await openVersion2(place);
  const dirIn = (place: CgroupPlace, generation: string) => join(place.dir, `outwork-${generation}`);
  const dirsOf = (generation: string) => places.map((place) => dirIn(place, generation));
  return {
    bounded,
    dirsOf,
    async make(generation) {
      const dirs = dirsOf(generation);
      try {
        await Promise.all(places.map((place) => makeGroup(place, dirIn(place, generation), limits)));
      } catch (cause) {
        await removeGroups(dirs, clock);
        throw new SandboxError('start_failed', `the sandbox's control group cannot be made: ${(cause as Error).message}`, { cause });
      }
      const filesOf = (controller: Controller, file: (place: CgroupPlace) => string) =>
        places.flatMap((place) => (place.controllers.includes(controller) ? join(dirIn(place, generation), file(place)) : []));
      const memory = filesOf('memory', ({ version }) => OOM_FILE[version]);
      const pids = filesOf('pids', () => PIDS_FILE);
      return {
        dirs,
        add: (pid) => addTo(dirs, pid),
        oomKills: () => counted(memory, /^oom_kill (\d+)$/m),
        refusedProcesses: () => counted(pids, /^max (\d+)$/m),
      };
    },
    remove: (dirs) => removeGroups(dirs, clock),
  };
}

async function openVersion2({ dir, controllers }: CgroupPlace): Promise<void> {
  const leaf = join(dir, 'outwork-kernel');
  await mkdir(leaf, { recursive: true });
  for (const pid of pidsIn(dir)) {
    await writeFile(join(leaf, 'cgroup.procs'), String(pid)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ESRCH') throw error;
    });
  }
  await writeFile(join(dir, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '));
}

async function makeGroup(place: CgroupPlace, dir: string, limits: SandboxLimits): Promise<void> {
  await mkdir(dir);
  for (const { file, value, optional } of groupSettings(place, limits)) {
    await writeFile(join(dir, file), value, { flag: 'r+' }).catch((error: NodeJS.ErrnoException) => {
      if (optional !== true || error.code !== 'ENOENT') throw error;
    });
  }
}

async function addTo(dirs: readonly string[], pid: number): Promise<void> {
  try {
    await Promise.all(dirs.map((dir) => writeFile(join(dir, 'cgroup.procs'), String(pid))));
  } catch (cause) {
    throw new SandboxError('start_failed', 'the sandbox cannot be put into its control group', { cause });
  }
}

/** Read at each command, at once: what is in memory answers in 20 µs, a read through the thread pool costs ten times that. */
function counted(files: readonly string[], line: RegExp): number {
  let count = 0;
  for (const file of files) {
    try {
      count += Number(line.exec(readFileSync(file, 'utf8'))?.[1] ?? 0);
    } catch {
      // The group has been removed, or this system does not count.
    }
  }
  return count;
}

async function removeGroups(dirs: readonly string[], clock: Clock): Promise<void> {
  for (const dir of dirs) {
    for (let tries = 0; ; tries += 1) {
      const error = await rmdir(dir).then(
        () => undefined,
        (failure: NodeJS.ErrnoException) => failure,
      );
      if (error === undefined || error.code === 'ENOENT') break;
      // The system takes a process out of its group a moment after it has ended.
      if (error.code !== 'EBUSY' || tries >= REMOVE_TRIES) throw error;
      await new Promise<void>((wake) => clock.after(REMOVE_PAUSE_MS, wake));
    }
  }
}
