import { pidsOfUid, type Scan, scanForGid } from './process-scan.ts';

/** Freezing passes of one round: a stopped process forks no more, so a fork bomb needs few. */
const FREEZE_PASSES = 100;
/** Rounds after which a tree that still changes is ended by stopping every tool at once. */
const PLAIN_ROUNDS = 12;
const END_MS = 5000;

/**
 * Ends what an invocation has started, by its gid, which no tool can shed: setsid, double forks and ignored signals do not help it.
 *
 * A round: stop what is there, look again until nothing new appears, kill, look again. A process that forks and ends faster than /proc can be
 * read escapes any number of rounds; then one `kill(-1)` as the tool uid, which the kernel makes atomic against fork, stops every tool of the
 * sandbox, this gid's are killed, and the others go on.
 */
export class ProcessTrees {
  readonly #toolUid: number;
  readonly #freezerGid: number;
  #freezing: Promise<unknown> = Promise.resolve();

  /** @param freezerGid - of the short process that stops all tools; one that is never ended while it does so */
  constructor(toolUid: number, freezerGid: number) {
    this.#toolUid = toolUid;
    this.#freezerGid = freezerGid;
  }

  /** @returns whether none is left; false only when the kernel could not end one within five seconds */
  async end(gid: number): Promise<boolean> {
    const endMs = performance.now() + END_MS;
    const dead = new Set<number>();
    for (let round = 0; ; round += 1) {
      const scan = stopAll(gid, dead);
      if (scan.live.length === 0 && scan.conclusive) return true;
      for (const pid of scan.live) send(pid, 'SIGKILL');
      if (performance.now() > endMs) return false;
      if (round === PLAIN_ROUNDS) {
        this.#freezing = this.#freezing.then(() => this.#endFrozen(gid));
        if (await this.#freezing) return true;
        round = 0;
      }
      await pause(Math.min(round, 10));
    }
  }

  /** One at a time: the end of one freeze would thaw what another has stopped. */
  async #endFrozen(gid: number): Promise<boolean> {
    if (!(await this.#freezeTools())) return false;
    try {
      for (let tries = 0; tries < 100; tries += 1) {
        const { live } = scanForGid(gid);
        if (live.length === 0) return true;
        for (const pid of live) send(pid, 'SIGKILL');
        await pause(1);
      }
      return false;
    } finally {
      for (const pid of pidsOfUid(this.#toolUid)) send(pid, 'SIGCONT');
    }
  }

  /** @returns whether the stop was sent: a tool can end the short process that sends it, and it is tried again then */
  #freezeTools(): Promise<boolean> {
    const { spawn } = process.getBuiltinModule('node:child_process');
    const freezer = spawn('/bin/sh', ['-c', 'kill -s STOP -- -1'], {
      cwd: '/',
      env: {},
      uid: this.#toolUid,
      gid: this.#freezerGid,
      detached: true,
      stdio: 'ignore',
    });
    return new Promise((resolve) => {
      freezer.once('error', () => resolve(false));
      freezer.once('exit', (code) => resolve(code === 0));
    });
  }
}

/** Whether a process carries `gid`, or may do so unseen. */
export const mayCarryGid = (gid: number): boolean => {
  const scan = scanForGid(gid);
  return scan.live.length > 0 || !scan.conclusive;
};

function stopAll(gid: number, dead: Set<number>): Scan {
  const stopped = new Set<number>();
  let scan = scanForGid(gid, dead);
  for (let pass = 0; pass < FREEZE_PASSES; pass += 1) {
    const fresh = scan.live.filter((pid) => !stopped.has(pid));
    if (fresh.length === 0) break;
    for (const pid of fresh) {
      send(pid, 'SIGSTOP');
      stopped.add(pid);
    }
    scan = scanForGid(gid, dead);
  }
  return scan;
}

function send(pid: number, signal: 'SIGSTOP' | 'SIGKILL' | 'SIGCONT'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already.
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
