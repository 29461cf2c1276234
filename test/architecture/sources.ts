import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

/** Tracked files below the root, those that were deleted and not yet committed left out. */
export function trackedFiles(): string[] {
  const list = (...args: string[]) => execFileSync('git', ['-C', ROOT, 'ls-files', '-z', ...args], { encoding: 'utf8' }).split('\0');
  const deleted = new Set(list('--deleted'));
  return list().filter((file) => file !== '' && !deleted.has(file));
}

export const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** One import or re-export of a module. */
export interface ImportEdge {
  readonly from: string;
  /** As written: `node:fs`, a package, or a path. */
  readonly specifier: string;
  /** The file it leads to, from the root; undefined unless it is a path. */
  readonly target: string | undefined;
  /** Erased before it runs. */
  readonly typeOnly: boolean;
}

const STATEMENT = /^\s*(?:import|export)\s+(type\s+)?(?:[^'"();]*?\s+from\s+)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\bimport\(\s*['"]([^'"]+)['"]\s*\)(\s*\.\s*[A-Z])?/g;

/** Imports of one file. Comments are taken out first; a dynamic import counts like a static one. */
export function importsOf(from: string, text: string): ImportEdge[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const edge = (specifier: string, typeOnly: boolean): ImportEdge => ({
    from,
    specifier,
    target: specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : undefined,
    typeOnly,
  });
  return [
    ...[...code.matchAll(STATEMENT)].map(([, type, specifier = '']) => edge(specifier, type !== undefined)),
    // `import('…').Name` stands where a type stands; `(await import('…')).name` does not match the second group.
    ...[...code.matchAll(DYNAMIC)].map(([, specifier = '', name]) => edge(specifier, name !== undefined)),
  ];
}

/** Imports of every tracked TypeScript file below the folders. */
export const importsBelow = (...folders: readonly string[]): ImportEdge[] =>
  trackedFiles()
    .filter((file) => file.endsWith('.ts') && folders.some((folder) => file.startsWith(`${folder}/`)))
    .flatMap((file) => importsOf(file, read(file)));
