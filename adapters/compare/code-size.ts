import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlacementName } from '../../core/run/types.ts';

const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));

const LOOP_IN_SANDBOX = ['adapters/executor/guest-executor.ts', 'harnesses/guest/membrane-client.ts', 'harnesses/guest/harnesses.ts'];

/** Where a placement's own code begins, in the kernel and in the sandbox; what these files import is followed. */
const OWN: Readonly<Record<PlacementName, readonly string[]>> = {
  'host-loop-shell': ['adapters/executor/host-loop-executor.ts'],
  'disposable-per-run': LOOP_IN_SANDBOX,
  'persistent-per-user': LOOP_IN_SANDBOX,
};

/** What every placement needs, because each has a sandbox with a guest in it: a cost of sandboxes and of no placement. */
const SHARED = [
  'adapters/membrane/server.ts',
  'adapters/placement/sandboxed.ts',
  'adapters/sandbox/manager.ts',
  'harnesses/guest/guest.ts',
  'harnesses/scripted/harness.ts',
];

/** Files and lines outside core that this placement needs beyond what all placements share. Null where the sources are not installed. */
export async function countCode(placement: PlacementName): Promise<{ readonly files: number; readonly lines: number } | null> {
  try {
    const beginnings = new Set(Object.values(OWN).flat().map(absolute));
    const shared = await importClosure(SHARED, beginnings);
    const own = [...(await importClosure(OWN[placement], new Set()))].filter(([file]) => !shared.has(file));
    return { files: own.length, lines: own.reduce((sum, [, lines]) => sum + lines, 0) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

const absolute = (file: string): string => resolve(PACKAGE, file);

/** Every file outside core that the entries import at run time, with its number of lines; files of `except` are not entered. */
async function importClosure(entries: readonly string[], except: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const queue = entries.map(absolute);
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (found.has(file) || except.has(file)) continue;
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
