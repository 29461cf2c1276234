import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import type { FileOperation, FileResult } from '../../core/ports/placement.ts';
import { checkInside, namesOf, openDirectory, regular, within } from './directory.ts';
import { GuestError } from './errors.ts';
import { fileError } from './file-error.ts';

/** One file read or written; the kernel's own bound. */
const FILE_BYTES = 512 * 1024;
/** A list on the wire. */
const LIST_BYTES = 700 * 1024;
/** Text whose JSON form is longer goes as base64, which is not. */
const TEXT_BYTES = 800 * 1024;
const LIST_SCAN = 20_000;

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** What the helper does; approved files are the executor's own. */
export type WorkspaceOperation = Exclude<FileOperation, { op: 'place' }>;

/**
 * One file operation below `root`, with the rights of this process. No link is followed at the leaf, none out of the root anywhere; regular
 * files and directories only, and a FIFO or device blocks nothing.
 *
 * @throws GuestError `path_outside_workspace` `not_a_regular_file` `file_not_found` `file_too_large` `file_not_permitted` `disk_full` `io_failed`
 */
export function operate(root: string, operation: WorkspaceOperation): FileResult {
  try {
    if (operation.op === 'read') return readFile(root, operation.path, operation.maxBytes);
    if (operation.op === 'write') return writeFile(root, operation);
    return listDirectory(root, operation.path, operation.maxEntries);
  } catch (error) {
    throw fileError(error, operation.path);
  }
}

function readFile(root: string, path: string, maxBytes: number): FileResult {
  return inParent(root, path, false, (directory, leaf, rootPath) => {
    const fd = openSync(within(directory, leaf), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    checkInside(fd, rootPath, path);
    return using(fd, () => {
      const { size } = regular(fd, path);
      const bytes = readUpTo(fd, Math.min(maxBytes, FILE_BYTES));
      return { op: 'read', ...encoded(bytes, bytes.length < size), size: Math.max(size, bytes.length), truncated: bytes.length < size };
    });
  });
}

function readUpTo(fd: number, limit: number): Buffer {
  const bytes = Buffer.allocUnsafe(limit);
  let length = 0;
  while (length < limit) {
    const more = readSync(fd, bytes, length, limit - length, null);
    if (more === 0) break;
    length += more;
  }
  return bytes.subarray(0, length);
}

/** Text when every byte of it survives as text and as JSON, else base64. A cut character at the end of a part is left out. */
function encoded(bytes: Buffer, cut: boolean): { body: string; encoding: 'utf8' | 'base64' } {
  for (let drop = 0; drop <= (cut ? 3 : 0) && drop <= bytes.length; drop += 1) {
    const body = bytes.toString('utf8', 0, bytes.length - drop);
    if (body.includes('\0') || Buffer.byteLength(body) !== bytes.length - drop || body.includes('\ufffd')) continue;
    if (Buffer.byteLength(JSON.stringify(body)) > TEXT_BYTES) break;
    return { body, encoding: 'utf8' };
  }
  return { body: bytes.toString('base64'), encoding: 'base64' };
}

function writeFile(root: string, { path, body, encoding, append }: Extract<FileOperation, { op: 'write' }>): FileResult {
  const bytes = Buffer.from(body, encoding);
  if (bytes.length > FILE_BYTES) throw new GuestError('file_too_large', `${path}: more than ${FILE_BYTES} bytes`);
  return inParent(root, path, true, (directory, leaf, rootPath) => {
    const size = append === true ? appendTo(within(directory, leaf), bytes, path, rootPath) : replace(directory, leaf, bytes, path);
    return { op: 'write', size };
  });
}

function appendTo(target: string, bytes: Buffer, path: string, rootPath: string): number {
  const fd = openSync(target, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o666);
  checkInside(fd, rootPath, path);
  return using(fd, () => {
    regular(fd, path);
    writeAll(fd, bytes);
    return fstatSync(fd).size;
  });
}

/** Whoever reads the file sees the old or the new one, whole. */
function replace(directory: number, leaf: string, bytes: Buffer, path: string): number {
  const target = within(directory, leaf);
  const old = lstatSync(target, { throwIfNoEntry: false });
  if (old !== undefined && !old.isFile()) throw new GuestError('not_a_regular_file', `${path}: not a regular file`);
  const temporary = within(directory, `.outwork-${process.pid}-${performance.now().toString(36).replace('.', '')}`);
  const fd = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666);
  try {
    using(fd, () => {
      writeAll(fd, bytes);
      if (old !== undefined) fchmodSync(fd, old.mode & 0o777);
    });
    renameSync(temporary, target);
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  }
  return bytes.length;
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

function listDirectory(root: string, path: string, maxEntries: number): FileResult {
  const directory = openDirectory(root, namesOf(path), false);
  return using(directory, () => {
    const names = namesIn(directory);
    const entries: { name: string; kind: 'file' | 'directory' | 'link' | 'other'; size: number }[] = [];
    let bytes = 0;
    for (const name of names.sort((a, b) => (a < b ? -1 : 1))) {
      bytes += Buffer.byteLength(JSON.stringify(name)) + 48;
      if (entries.length >= maxEntries || bytes > LIST_BYTES) break;
      const stat = lstatSync(within(directory, name), { throwIfNoEntry: false });
      const kind = stat?.isFile() ? 'file' : stat?.isDirectory() ? 'directory' : stat?.isSymbolicLink() ? 'link' : 'other';
      entries.push({ name, kind, size: stat?.size ?? 0 });
    }
    return { op: 'list', entries, truncated: entries.length < names.length };
  });
}

function namesIn(directory: number): string[] {
  const handle = opendirSync(within(directory, '.'));
  const names: string[] = [];
  try {
    for (let entry = handle.readSync(); entry !== null && names.length < LIST_SCAN; entry = handle.readSync()) names.push(entry.name);
  } finally {
    handle.closeSync();
  }
  return names;
}

/** Works on the last name of `path` in its checked directory. */
function inParent<T>(root: string, path: string, make: boolean, work: (directory: number, leaf: string, rootPath: string) => T): T {
  const names = namesOf(path);
  const leaf = names.pop();
  if (leaf === undefined) throw new GuestError('not_a_regular_file', `${path === '' ? '.' : path}: is a directory`);
  const rootFd = openDirectory(root, [], false);
  const rootPath = using(rootFd, () => readlinkSync(`/proc/self/fd/${rootFd}`));
  const directory = openDirectory(root, names, make);
  return using(directory, () => work(directory, leaf, rootPath));
}

function using<T>(fd: number, work: () => T): T {
  try {
    return work();
  } finally {
    closeSync(fd);
  }
}
