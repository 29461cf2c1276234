import { chmodSync, lstatSync, mkdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { PrerequisiteError } from '../../core/errors.ts';
import { newId } from '../../core/ids.ts';
import { SAFETY } from '../../core/limits.ts';
import { type Environment, xdgDir } from './file.ts';
import { placeFault } from './place.ts';

/** `$XDG_STATE_HOME/outwork`, or below `~/.local/state`. */
export const defaultStateDir = (env: Environment): string => join(xdgDir(env, 'XDG_STATE_HOME', join('.local', 'state')), 'outwork');

/** The database of a state directory. */
export const databaseFile = (stateDir: string): string => join(stateDir, 'outwork.db');

/**
 * Makes the state directory with mode 0700, or checks the one that is there: a real directory of this user that nobody else may enter.
 * @throws PrerequisiteError `state_directory_unusable`
 */
export function ensureStateDir(dir: string): void {
  const fault = stateDirFault(dir);
  if (fault !== undefined) throw unusable(dir, fault);
  if (inspect(dir) !== undefined) return;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // `mkdir` is narrowed by the umask; an odd one would leave a directory that we ourselves cannot use.
    chmodSync(dir, 0o700);
  } catch (cause) {
    throw unusable(dir, { message: `cannot be made (${codeOf(cause)})`, fix: 'choose another with --state DIR' }, cause);
  }
  const after = stateDirFault(dir);
  if (after !== undefined) throw unusable(dir, after);
}

/** Why `dir` may not be used; undefined when it may, also when it does not exist yet. Changes nothing. */
export function stateDirFault(dir: string): { message: string; fix: string } | undefined {
  const longest = Buffer.byteLength(join(dir, 's', newId('sandbox'), 'membrane.sock'));
  if (longest > SAFETY.socketPathBytes) {
    return { message: 'is too long: a socket path below it would not fit', fix: `choose a shorter one with --state DIR` };
  }
  let stat: Stats | undefined;
  try {
    stat = inspect(dir);
  } catch (cause) {
    return { message: `cannot be examined (${codeOf(cause)})`, fix: 'choose another with --state DIR' };
  }
  if (stat === undefined) return unfit(dir, 'cannot be made');
  if (stat.isSymbolicLink()) return { message: 'is a symbolic link', fix: 'name the directory it points to with --state DIR' };
  if (!stat.isDirectory()) return { message: 'is not a directory', fix: 'choose another with --state DIR' };
  const uid = process.geteuid?.();
  if (uid !== undefined && stat.uid !== uid) {
    return { message: `belongs to uid ${stat.uid}, not to uid ${uid}`, fix: 'run as its owner, or choose another with --state DIR' };
  }
  if ((stat.mode & 0o077) !== 0) {
    return { message: `is open to others (mode ${(stat.mode & 0o7777).toString(8).padStart(4, '0')})`, fix: `chmod 700 ${dir}` };
  }
  return unfit(dir, 'cannot be used');
}

function unfit(dir: string, verdict: string): { message: string; fix: string } | undefined {
  const fault = placeFault(dir);
  return fault === undefined ? undefined : { message: `${verdict}: ${fault}`, fix: 'choose another with --state DIR' };
}

function inspect(dir: string): Stats | undefined {
  return lstatSync(dir, { throwIfNoEntry: false });
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown';

const unusable = (dir: string, fault: { message: string; fix: string }, cause?: unknown): PrerequisiteError =>
  new PrerequisiteError('state_directory_unusable', `state directory ${dir} ${fault.message}`, { hint: fault.fix, cause });
