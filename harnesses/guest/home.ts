import {
  closeSync,
  cpSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

/** Raised when what a seeded HOME looks like changes. */
const LAYOUT = 1;
const OWN = '.outwork';
const MARKER = 'home-version';

/** What a HOME is seeded from: each entry of the directory becomes one of HOME; a file `VERSION` in it names its version. */
export interface HomeSeed {
  readonly home: string;
  readonly source: string;
}

/** The version that a HOME seeded now would bear; undefined when there is nothing to seed from. */
export function seedVersion(source: string): string | undefined {
  if (!existsSync(source)) return undefined;
  const version = readText(join(source, 'VERSION')) ?? '0';
  return `${LAYOUT}-${version.trim()}`;
}

/** False when HOME bears another version or none, or cannot be looked into. */
export const isSeeded = ({ home, source }: HomeSeed): boolean => readText(join(home, OWN, MARKER)) === seedVersion(source);

/**
 * Brings every entry of the seed that HOME lacks there: copied beside it, made durable, then moved into place as a whole. Whoever looks sees
 * an entry entire or not at all; what a start that was interrupted has left is removed by the next one, and the version is written last.
 * What is there already stays as its user has it.
 *
 * @throws whatever the file system says; HOME is then as before but for whole entries, and the next call goes on
 */
export function seedHome({ home, source }: HomeSeed): void {
  const version = seedVersion(source);
  if (version === undefined || isSeeded({ home, source })) return;
  const own = join(home, OWN);
  mkdirSync(own, { recursive: true });
  for (const name of readdirSync(own)) if (name.startsWith('stage-')) rmSync(join(own, name), { recursive: true, force: true });
  const stage = join(own, `stage-${process.pid}-${Date.now().toString(36)}`);
  mkdirSync(stage);
  try {
    for (const name of readdirSync(source)) {
      if (name === 'VERSION' || lstatSync(join(home, name), { throwIfNoEntry: false }) !== undefined) continue;
      cpSync(join(source, name), join(stage, name), { recursive: true, verbatimSymlinks: true, errorOnExist: true, force: false });
      sync(join(stage, name));
      renameSync(join(stage, name), join(home, name));
    }
    syncOne(home);
    writeMarker(own, stage, version);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function writeMarker(own: string, stage: string, version: string): void {
  const draft = join(stage, MARKER);
  const fd = openSync(draft, 'wx', 0o644);
  try {
    writeSync(fd, version);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(draft, join(own, MARKER));
  syncOne(own);
}

/** A tree's files and directories on disk, children first. Links have nothing of their own. */
function sync(path: string): void {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  if (stat.isDirectory()) for (const name of readdirSync(path)) sync(join(path, name));
  syncOne(path);
}

function syncOne(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
