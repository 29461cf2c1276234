import { readFileSync } from 'node:fs';
import { PrerequisiteError } from '../../core/errors.ts';

/** What a kernel with a few sandboxes opens, with room to spare; with less it fails somewhere in the middle, each time elsewhere. */
const OPEN_FILES_LEAST = 256;

const HINT = 'ulimit -n 4096, or LimitNOFILE= of the service';

/** How many files this process may have open: Node raises its soft limit to the hard one when it starts. */
export function openFilesLimit(): number {
  const [, soft = 'unlimited'] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

/** @throws PrerequisiteError `open_files_exhausted` */
export function requireOpenFiles(limit = openFilesLimit()): void {
  if (limit >= OPEN_FILES_LEAST) return;
  throw new PrerequisiteError('open_files_exhausted', `this process may open ${limit} files, and ${OPEN_FILES_LEAST} are needed`, {
    hint: HINT,
  });
}

/** An error whose cause, however deep, is that no file could be opened any more is told as that; any other stays what it is. */
export function openFilesError(error: unknown): unknown {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    const { code } = at as NodeJS.ErrnoException;
    if (code === 'EMFILE')
      return new PrerequisiteError('open_files_exhausted', 'this process has too many files open', { hint: HINT, cause: error });
    if (code === 'ENFILE')
      return new PrerequisiteError('open_files_exhausted', 'this machine has too many files open', {
        hint: 'sysctl fs.file-max',
        cause: error,
      });
  }
  return error;
}
