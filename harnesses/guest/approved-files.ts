import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FileOperation, FileResult } from '../../core/ports/placement.ts';
import { GuestError } from './errors.ts';
import { fileError } from './file-error.ts';

/** Bytes of one file; the kernel's own bound. */
const FILE_BYTES = 512 * 1024;
/** Files kept at once: more than commands of one user that start at the same time. The oldest go first. */
const KEPT = 24;

/**
 * Files that a person approved, where the executor alone may write: tools read and run them under `<dir>/<sha256>/<name>`, and what they hold
 * cannot change under a name. A small tmpfs of the sandbox; it ends with it.
 */
export class ApprovedFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** @throws GuestError `invalid_arguments` (no plain name, other bytes than the digest says) `file_too_large` `disk_full` `io_failed` */
  place({ sha256, name, body }: Extract<FileOperation, { op: 'place' }>): FileResult {
    const bytes = Buffer.from(body, 'base64');
    if (bytes.length > FILE_BYTES) throw new GuestError('file_too_large', `${name}: more than ${FILE_BYTES} bytes`);
    if (name.includes('/') || name.includes('\0') || name === '.' || name === '..' || !/^[0-9a-f]{64}$/.test(sha256))
      throw new GuestError('invalid_arguments', 'not a plain name in a directory of its digest');
    if (process.getBuiltinModule('node:crypto').createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw new GuestError('invalid_arguments', `${name}: not the bytes of its digest`);
    try {
      const directory = join(this.#dir, sha256);
      mkdirSync(directory, { recursive: true, mode: 0o755 });
      const draft = join(directory, `.${process.hrtime.bigint()}`);
      writeFileSync(draft, bytes, { mode: 0o555, flag: 'wx' });
      renameSync(draft, join(directory, name));
      this.#makeRoom(sha256);
    } catch (error) {
      throw fileError(error, name);
    }
    return { op: 'write', size: bytes.length };
  }

  #makeRoom(newest: string): void {
    const age = (name: string) => statSync(join(this.#dir, name)).mtimeMs;
    const others = readdirSync(this.#dir).filter((name) => name !== newest);
    const oldestFirst = others.map((name) => ({ name, at: age(name) })).sort((a, b) => a.at - b.at);
    for (const { name } of oldestFirst.slice(0, Math.max(0, others.length + 1 - KEPT))) rmSync(join(this.#dir, name), { recursive: true });
  }
}
