import { readFileSync } from 'node:fs';
import { access, constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CgroupPlace, CONTROLLERS, type Controller, cgroupPlaces } from './places.ts';

/** What of this machine's control groups this process may use, and why not the rest. */
export interface CgroupFinding {
  readonly places: readonly CgroupPlace[];
  readonly bounded: readonly Controller[];
  /** One line per controller that cannot be used. */
  readonly missing: readonly string[];
  /** Which version this machine has its controllers in. */
  readonly version: 1 | 2;
}

/** Files that say where this process stands; tests put others there. */
export interface CgroupSources {
  readonly mountinfo: string;
  readonly own: string;
  /** Pid and parents of this process as far as its own user's, read when version 2 asks for it. */
  readonly pid: number;
}

export const SYSTEM_CGROUPS: CgroupSources = { mountinfo: '/proc/self/mountinfo', own: '/proc/self/cgroup', pid: process.pid };

/** Looks, changes nothing. */
export async function findCgroups(sources: CgroupSources = SYSTEM_CGROUPS): Promise<CgroupFinding> {
  const [mountinfo, own] = await Promise.all([readFile(sources.mountinfo, 'utf8'), readFile(sources.own, 'utf8')]);
  const all = cgroupPlaces(mountinfo, own, (dir) => readText(join(dir, 'cgroup.controllers')));
  const places: CgroupPlace[] = [];
  const faults = new Map<Controller, string>();
  for (const place of all) {
    const fault = await placeFault(place, sources);
    if (fault === undefined) places.push(place);
    else for (const name of place.controllers) faults.set(name, fault);
  }
  const bounded = CONTROLLERS.filter((name) => places.some(({ controllers }) => controllers.includes(name)));
  const missing = CONTROLLERS.filter((name) => !bounded.includes(name)).map(
    (name) => `${name}: ${faults.get(name) ?? 'no such controller'}`,
  );
  return { places, bounded, missing, version: all.some(({ version }) => version === 1) ? 1 : 2 };
}

async function placeFault({ version, dir }: CgroupPlace, { pid }: CgroupSources): Promise<string | undefined> {
  if (!(await writable(dir))) return `${dir} is not ours to write`;
  if (version === 1) return undefined;
  if (!(await writable(join(dir, 'cgroup.subtree_control')))) return `${dir} is not delegated to us`;
  // A group of version 2 that has processes of its own cannot bound groups below it: they are to be moved, and only our own may be.
  const strangers = pidsIn(dir).filter((found) => !isOurs(found, pid));
  return strangers.length === 0 ? undefined : `${dir} holds processes that are not ours (${strangers.slice(0, 3).join(', ')})`;
}

export const pidsIn = (dir: string): number[] =>
  readText(join(dir, 'cgroup.procs'))
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);

/** This process, its ancestors (a launcher, npm) and its descendants. */
function isOurs(pid: number, self: number): boolean {
  return ancestors(pid).includes(self) || ancestors(self).includes(pid);
}

function ancestors(pid: number): number[] {
  const found: number[] = [];
  for (let at = pid; at > 1 && found.length < 64; ) {
    found.push(at);
    const stat = readText(`/proc/${at}/stat`);
    at = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
  }
  return found;
}

const writable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  );

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // It ended, or this kernel has no such file.
  }
}
