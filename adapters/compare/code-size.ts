import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PLACEMENTS, type PlacementName } from '../../core/run/types.ts';

const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));

/** Where each placement's own code begins, in the kernel and in the sandbox; what these files import is followed. */
export const ENTRIES: Readonly<Record<PlacementName, readonly string[]>> = {
  'host-loop-shell': ['adapters/executor/host-loop-executor.ts', 'harnesses/guest/exec.ts'],
  'disposable-per-run': ['adapters/executor/guest-executor.ts', 'harnesses/guest/guest.ts'],
  'persistent-per-user': ['adapters/executor/guest-executor.ts', 'harnesses/guest/guest.ts'],
};

/**
 * Files and lines outside core that this placement needs and at least one other does not. Null where the sources are not installed.
 * What all of them share (engine, membrane channel, command runner) is a cost of sandboxes and not of one placement.
 */
export async function countCode(placement: PlacementName): Promise<{ readonly files: number; readonly lines: number } | null> {
  try {
    const closures = new Map<PlacementName, ReadonlyMap<string, number>>();
    for (const name of PLACEMENTS) closures.set(name, await importClosure(ENTRIES[name]));
    const own = [...(closures.get(placement) ?? [])].filter(([file]) => ![...closures.values()].every((closure) => closure.has(file)));
    return { files: own.length, lines: own.reduce((sum, [, lines]) => sum + lines, 0) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Every file below adapters/ and harnesses/ that the entries import at run time, with its number of lines. */
async function importClosure(entries: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const queue = entries.map((entry) => resolve(PACKAGE, entry));
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (found.has(file)) continue;
    const text = await readFile(file, 'utf8');
    found.set(file, text.split('\n').length - 1);
    for (const [, clause = '', specifier = ''] of text.matchAll(/^(?:import|export)\s+([^;'"]*?from\s+)?'(\.{1,2}\/[^']+\.ts)'/gm)) {
      if (clause.startsWith('type ')) continue;
      const imported = resolve(dirname(file), specifier);
      if (!imported.startsWith(`${PACKAGE}core/`)) queue.push(imported);
    }
  }
  return found;
}
