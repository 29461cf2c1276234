import { readdirSync, readFileSync } from 'node:fs';

/** Processes, zombies of whole ones excepted, that carry one of these gids; read without the guest's own code. */
export function livePids(gids: readonly number[]): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && carriesOne(pid, gids));
}

function carriesOne(pid: number, gids: readonly number[]): boolean {
  try {
    const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n');
    const dead = lines.some((line) => line.startsWith('State:\tZ')) && lines.includes('Threads:\t1');
    return (
      !dead &&
      lines.some(
        (line) =>
          line.startsWith('Gid:') &&
          line
            .split(/\s+/)
            .slice(1)
            .map(Number)
            .some((gid) => gids.includes(gid)),
      )
    );
  } catch {
    return false;
  }
}
