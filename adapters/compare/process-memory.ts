import { readdir, readFile } from 'node:fs/promises';

/**
 * Memory of one process that no other process shares, in bytes: `Private_*` and swap of `/proc/<pid>/smaps_rollup`. Undefined when the
 * process is gone. The text of the Node binary is shared by kernel, guest and `compare` itself, so it counts for none of them.
 */
export async function uniqueMemory(pid: number): Promise<number | undefined> {
  let rollup: string;
  try {
    rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  } catch {
    return undefined;
  }
  let kib = 0;
  for (const [, value] of rollup.matchAll(/^(?:Private_Clean|Private_Dirty|Private_Hugetlb|SwapPss):\s+(\d+) kB$/gm)) kib += Number(value);
  return kib * 1024;
}

/** Every live process below `pid`, nearest first; read from outside, so a sandbox's own pid namespace does not matter. */
export async function descendants(pid: number): Promise<readonly number[]> {
  const children = new Map<number, number[]>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = await parentOf(name);
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  for (let layer = children.get(pid) ?? []; layer.length > 0; layer = layer.flatMap((child) => children.get(child) ?? []))
    found.push(...layer);
  return found;
}

async function parentOf(pid: string): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The command name stands in parentheses and may hold spaces and parentheses itself.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
