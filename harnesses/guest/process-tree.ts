import { closeSync, openSync, readdirSync, readSync } from 'node:fs';

/** Freezing passes of one round; a fork bomb needs few, since a stopped process forks no more. */
const FREEZE_PASSES = 200;

interface Scan {
  readonly live: readonly number[];
  /** False when a process vanished meanwhile: a child it left may have been missed. */
  readonly conclusive: boolean;
}

/**
 * Ends every process that carries `gid`, which no tool can shed: setsid, double forks and ignored signals do not help it.
 * Stop, look again until nothing new appears, kill, look again.
 *
 * @returns whether none is left; false only when the kernel could not end one within `withinMs`
 */
export async function endTree(gid: number, withinMs = 2000): Promise<boolean> {
  const endMs = performance.now() + withinMs;
  const dead = new Set<number>();
  for (let waitMs = 0; ; waitMs = Math.min(10, waitMs + 1)) {
    const scan = freeze(gid, dead);
    if (scan.live.length === 0 && scan.conclusive) return true;
    for (const pid of scan.live) send(pid, 'SIGKILL');
    if (performance.now() > endMs) return false;
    await pause(waitMs);
  }
}

/** Whether a live process carries `gid`. */
export const carriesGid = (gid: number): boolean => {
  const scan = scanFor(gid, new Set());
  return scan.live.length > 0 || !scan.conclusive;
};

function freeze(gid: number, dead: Set<number>): Scan {
  const stopped = new Set<number>();
  let scan = scanFor(gid, dead);
  for (let pass = 0; pass < FREEZE_PASSES; pass += 1) {
    const fresh = scan.live.filter((pid) => !stopped.has(pid));
    if (fresh.length === 0) break;
    for (const pid of fresh) {
      send(pid, 'SIGSTOP');
      stopped.add(pid);
    }
    scan = scanFor(gid, dead);
  }
  return scan;
}

function send(pid: number, signal: 'SIGSTOP' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already.
  }
}

/** `dead` collects zombies seen: one that was not there before may have left a child. Newest first, to catch a chain of forks at its end. */
function scanFor(gid: number, dead: Set<number>): Scan {
  const live: number[] = [];
  let conclusive = true;
  const names = readdirSync('/proc');
  for (let i = names.length - 1; i >= 0; i -= 1) {
    const pid = Number(names[i]);
    if (!(pid > 1) || pid === process.pid) continue;
    const status = readStatus(pid);
    if (status === undefined) conclusive = false;
    else if (status.gids.includes(gid)) {
      if (!status.dead) live.push(pid);
      else if (!dead.has(pid)) {
        dead.add(pid);
        conclusive = false;
      }
    }
  }
  return { live, conclusive };
}

const buffer = Buffer.allocUnsafe(2048);

/** Real, effective, saved and file-system gid. Not from the owner of /proc/<pid>: a process can make that root by being undumpable. */
function readStatus(pid: number): { gids: readonly number[]; dead: boolean } | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(`/proc/${pid}/status`, 'r');
    const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0));
    const gids = text.slice(text.indexOf('\nGid:') + 5, text.indexOf('\nFDSize:'));
    const state = text[text.indexOf('\nState:') + 8];
    return { gids: gids.trim().split(/\s+/).map(Number), dead: state === 'Z' || state === 'X' };
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
