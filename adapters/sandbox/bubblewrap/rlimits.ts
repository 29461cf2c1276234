import { readFile } from 'node:fs/promises';
import type { SandboxLimits } from '../../../core/config.ts';

const MiB = 1024 * 1024;

/**
 * Limits of each process of a sandbox, for prlimit(1): soft and hard. A limit that this kernel itself has lower stays: nobody but root could
 * raise it. Core dumps: 1, not 0, because a core_pattern that is a pipe ignores 0, and its program would read hostile memory on the host.
 */
export async function processLimits(limits: SandboxLimits, mode: 'normal' | 'clean-up', own?: string): Promise<string[]> {
  const text = own ?? (await readFile('/proc/self/limits', 'utf8'));
  const at = (name: string, value: number) => {
    const most = Math.min(value, hardLimit(text, name));
    return `${most}:${most}`;
  };
  return [
    `--core=${at('Max core file size', 1)}`,
    `--fsize=${at('Max file size', mode === 'clean-up' ? 0 : limits.fileMiB * MiB)}`,
    `--nofile=${at('Max open files', limits.openFiles)}`,
  ];
}

/** A hard limit by the text of /proc/self/limits. */
function hardLimit(text: string, name: string): number {
  const found = new RegExp(`^${name}\\s+\\S+\\s+(\\S+)`, 'm').exec(text)?.[1];
  return found === undefined || found === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found);
}
