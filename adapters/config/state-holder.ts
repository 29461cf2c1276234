import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** File below a state directory that names its holder, for a person only: the lock itself decides. */
export const holderFile = (dir: string): string => join(dir, 'kernel.pid');

/** The process that took the lock of a state directory last, in words, and what to do when it does not answer. */
export function holderOf(dir: string): { readonly process: string; readonly hint: string } {
  const pid = /^\d+$/.exec(textOf(holderFile(dir))?.trim() ?? '')?.[0];
  if (pid === undefined) return { process: 'process unknown', hint: `find who uses ${dir}, and end it` };
  const state = /^State:\s+(\S)/m.exec(textOf(`/proc/${pid}/status`) ?? '')?.[1];
  // Stopped by a signal, or held by a debugger.
  const stopped = state === 'T' || state === 't';
  return stopped
    ? { process: `process ${pid}, which is stopped`, hint: `kill -CONT ${pid} lets it go on` }
    : { process: `process ${pid}`, hint: `wait, or end it: kill ${pid}` };
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
