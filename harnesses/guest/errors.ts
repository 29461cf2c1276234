import type { CallErrorCode, MembraneErrorCode, SandboxErrorCode } from '../../core/errors.ts';

export type GuestErrorCode = CallErrorCode | MembraneErrorCode | SandboxErrorCode;

/** A refusal or failure inside the guest; its code crosses the wire as it is. */
export class GuestError extends Error {
  readonly code: string;

  constructor(code: GuestErrorCode, message: string) {
    super(message);
    this.name = 'GuestError';
    this.code = code;
  }
}

/** An answer of the kernel that was no success. `code` is the kernel's own. */
export class WireError extends Error {
  readonly code: string;
  /** HTTP status; 0 when no answer came at all. */
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'WireError';
    this.status = status;
    this.code = code;
  }
}

const CODE = /^[a-z][a-z0-9_.]{0,63}$/;

/** What the wire admits of any error: a code by its pattern, a bounded message. */
export function wireError(error: unknown, fallback: string): { code: string; message: string } {
  const code = (error as { code?: unknown } | null)?.code;
  const message = error instanceof Error ? error.message : String(error);
  return { code: typeof code === 'string' && CODE.test(code) ? code : fallback, message: message.slice(0, 2000).toWellFormed() };
}

/** Why a process could not be made: `pids` when the sandbox has as many as it may, else `io_failed`. */
export function spawnFault(error: Error, program: string): GuestError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EAGAIN' || code === 'ENOMEM') return new GuestError('pids', 'No further process can be made in this sandbox');
  return new GuestError('io_failed', `${program}: ${error.message}`);
}
