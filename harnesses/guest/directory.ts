import { closeSync, constants, fstatSync, mkdirSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { GuestError } from './errors.ts';

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY } = constants;

/** A path below a root: plain names only. @throws GuestError `path_outside_workspace` */
export function namesOf(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  if (path.startsWith('/') || path.includes('\0') || names.includes('..')) {
    throw new GuestError('path_outside_workspace', `${path}: not a relative path below the workspace`);
  }
  return names;
}

/**
 * Opens the directory `names` below `root`, one name at a time, each from the descriptor of the one before, and looks after each step where
 * it really is. Nothing is made or opened below a directory that was not checked. Links that stay inside may be followed.
 *
 * @param make - makes directories that are missing
 * @returns a descriptor; the caller closes it
 */
export function openDirectory(root: string, names: readonly string[], make: boolean): number {
  let fd = openSync(root, O_RDONLY | O_DIRECTORY);
  const rootPath = readlinkSync(`/proc/self/fd/${fd}`);
  for (const name of names) {
    let next: number;
    try {
      next = openStep(fd, name, make);
    } finally {
      closeSync(fd);
    }
    fd = next;
    checkInside(fd, rootPath, names.join('/'));
  }
  return fd;
}

function openStep(parent: number, name: string, make: boolean): number {
  const path = within(parent, name);
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  } catch (error) {
    if (!make || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

/** A name in an opened directory: no part of the path can be exchanged under us. */
export const within = (directory: number, name: string): string => `/proc/self/fd/${directory}/${name}`;

/** Looks where a descriptor really is; closes it when that is outside. @throws GuestError `path_outside_workspace` */
export function checkInside(fd: number, rootPath: string, path: string): void {
  const real = readlinkSync(`/proc/self/fd/${fd}`);
  if (real === rootPath || real.startsWith(`${rootPath}/`)) return;
  closeSync(fd);
  throw new GuestError('path_outside_workspace', `${path}: leads out of the workspace`);
}

/** The stat of a descriptor that must be a regular file. @throws GuestError `not_a_regular_file` */
export function regular(fd: number, path: string): Stats {
  const stat = fstatSync(fd);
  if (!stat.isFile()) throw new GuestError('not_a_regular_file', `${path}: not a regular file`);
  return stat;
}
