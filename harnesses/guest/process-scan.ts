import { closeSync, openSync, readdirSync, readSync } from 'node:fs';

/** What one look at /proc has found. */
export interface Scan {
  /** Live processes that carry the gid. */
  readonly live: readonly number[];
  /** False when a process vanished meanwhile: a child it left may have been missed. */
  readonly conclusive: boolean;
}

/**
 * Looks for processes that carry `gid` as any of their gids. Newest first, to meet a chain of forks at its end.
 *
 * @param dead - collects zombies: one that was not there in an earlier look may have left a child
 */
export function scanForGid(gid: number, dead: Set<number> = new Set()): Scan {
  const live: number[] = [];
  let conclusive = true;
  for (const pid of pidsNewestFirst()) {
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

/** Live processes that run as `uid`. */
export function pidsOfUid(uid: number): number[] {
  return pidsNewestFirst().filter((pid) => {
    const status = readStatus(pid);
    return status !== undefined && !status.dead && status.uid === uid;
  });
}

/** Without PID 1 and ourselves: neither is ever a tool. */
function pidsNewestFirst(): number[] {
  const pids: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (pid > 1 && pid !== process.pid) pids.push(pid);
  }
  return pids.reverse();
}

interface Status {
  readonly uid: number;
  /** Real, effective, saved and file-system gid. */
  readonly gids: readonly number[];
  readonly dead: boolean;
}

/** A main thread that has ended is a zombie too; its process lives on in the other threads. */
function isDead(status: string): boolean {
  const state = status[status.indexOf('\nState:') + 8];
  return (state === 'Z' || state === 'X') && Number.parseInt(status.slice(status.indexOf('\nThreads:') + 9), 10) <= 1;
}

/** The status file has all four gids; the owner of /proc/<pid> is the effective one only, which a setgid program changes. */
function readStatus(pid: number): Status | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(`/proc/${pid}/status`, 'r');
    const bytes = Buffer.allocUnsafe(1024);
    const text = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0));
    const gidAt = text.indexOf('\nGid:');
    return {
      uid: Number.parseInt(text.slice(text.indexOf('\nUid:') + 5), 10),
      gids: text
        .slice(gidAt + 5, text.indexOf('\n', gidAt + 5))
        .trim()
        .split('\t')
        .map(Number),
      dead: isDead(text),
    };
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
