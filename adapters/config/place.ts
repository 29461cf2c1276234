import { accessSync, constants, lstatSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * File systems that the system's kernel makes up, by their number in statfs(2): what is written there is not kept, and making a folder below `/proc`
 * with its parents never ends in Node. `/dev` has the number of any tmpfs and is told by its path.
 */
const MADE_UP: ReadonlyMap<number, string> = new Map([
  [0x9fa0, 'proc'],
  [0x62656572, 'sysfs'],
  [0x27e0eb, 'cgroup'],
  [0x63677270, 'cgroup2'],
  [0x1cd1, 'devpts'],
  [0x64626720, 'debugfs'],
  [0x74726163, 'tracefs'],
  [0x73636673, 'securityfs'],
  [0x62656570, 'configfs'],
  [0xcafe4a11, 'bpf'],
  [0x19800202, 'mqueue'],
]);

const DEVICES = /^\/dev(\/(?!shm(\/|$))|$)/;

/**
 * Why a folder at `path` could not be made, or be written when it is there: looks at the nearest ancestor that exists and changes nothing.
 * @param path - absolute
 */
export function placeFault(path: string): string | undefined {
  const at = nearestExisting(path);
  try {
    const real = realpathSync(at);
    const type = DEVICES.test(real) ? 'devices' : MADE_UP.get(statfsSync(real).type);
    if (type !== undefined) return `${real} keeps no files (${type})`;
    if (!statSync(real).isDirectory()) return `${at} is not a directory`;
    accessSync(real, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    if (code === 'EROFS') return `${at} is read-only (${code})`;
    return `${at} ${code === 'EACCES' ? 'may not be written by this user' : 'is not usable'} (${code})`;
  }
}

/** The path itself when it is there, else the nearest of its ancestors that is. */
export function nearestExisting(path: string): string {
  const parent = dirname(path);
  return path === parent || exists(path) ? path : nearestExisting(parent);
}

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // Not allowed to look, or below a file: the parent says why.
    return false;
  }
}
