import { posix } from 'node:path';

export const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** A directory of a cgroup file system below which groups may be made: the one that this process itself is in. */
export interface CgroupPlace {
  readonly version: 1 | 2;
  readonly controllers: readonly Controller[];
  readonly dir: string;
}

/**
 * Where this process stands in the hierarchies that have the controllers we use, by the texts of /proc/self/mountinfo and
 * /proc/self/cgroup. Never above its own group: what bounds this process bounds its sandboxes too. Of version 2 the controllers are those
 * that `available` (cgroup.controllers of the directory) names.
 */
export function cgroupPlaces(mountinfo: string, own: string, available: (dir: string) => string): CgroupPlace[] {
  const places: CgroupPlace[] = [];
  const mounts = mountinfo.split('\n').flatMap(parseMount);
  for (const line of own.split('\n')) {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    if (match === null) continue;
    const [, , names = '', path = '/'] = match;
    const version = names === '' ? 2 : 1;
    const mount = mounts.find((found) => found.version === version && (version === 2 || sameSet(found.controllers, names.split(','))));
    const dir = mount && below(mount, path);
    if (dir === undefined) continue;
    const present = version === 1 ? names.split(',') : available(dir).trim().split(/\s+/);
    const controllers = CONTROLLERS.filter((name) => present.includes(name));
    if (controllers.length > 0) places.push({ version, controllers, dir });
  }
  return places;
}

interface Mount {
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
  readonly root: string;
  readonly point: string;
}

/** One line of proc_pid_mountinfo(5): `id parent dev root point options … - type source super-options`. */
function parseMount(line: string): Mount[] {
  const [left = '', right = ''] = line.split(' - ');
  const [, , , root, point] = left.split(' ');
  const [type, , options = ''] = right.split(' ');
  if (root === undefined || point === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return [];
  return [
    { version: type === 'cgroup2' ? 2 : 1, controllers: options.split(',').filter((name) => name !== 'rw' && name !== 'ro'), root, point },
  ];
}

/** A hierarchy of version 1 has every controller that the process's line names, and flags besides. */
const sameSet = (mounted: readonly string[], wanted: readonly string[]): boolean => wanted.every((name) => mounted.includes(name));

/** Undefined when the process's group is not visible through the mount, as in some containers. */
function below(mount: Mount, path: string): string | undefined {
  const relative = posix.relative(mount.root, path);
  return relative.startsWith('..') ? undefined : posix.join(mount.point, relative);
}
