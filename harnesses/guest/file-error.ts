import { GuestError, type GuestErrorCode } from './errors.ts';

const CODES: { readonly [errno: string]: GuestErrorCode } = {
  ENOENT: 'file_not_found',
  ENOTDIR: 'file_not_found',
  ELOOP: 'not_a_regular_file',
  EISDIR: 'not_a_regular_file',
  ENXIO: 'not_a_regular_file',
  EEXIST: 'not_a_regular_file',
  EACCES: 'file_not_permitted',
  EPERM: 'file_not_permitted',
  EROFS: 'file_not_permitted',
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
};

/** A failed system call as a typed refusal; the message names the path as it was asked for, never a real one. */
export function fileError(error: unknown, path: string): GuestError {
  if (error instanceof GuestError) return error;
  const errno = (error as NodeJS.ErrnoException).code ?? 'unknown';
  return new GuestError(CODES[errno] ?? 'io_failed', `${path}: ${errno}`);
}
