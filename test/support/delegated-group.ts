import { chownSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupPlaces } from '../../adapters/sandbox/cgroup/places.ts';
import type { KernelUser } from '../../adapters/sandbox/slices.ts';

/** Control groups that root has given to an ordinary user, with one process of that user in them. */
export interface DelegatedGroup {
  /** When the process and all that it made is gone. */
  remove(): Promise<void>;
}

let made = 0;

/** What `systemd-run --user --scope -p Delegate=yes` does, for hierarchies of version 1. Undefined when we may not. */
export function delegateTo(user: KernelUser, pid: number): DelegatedGroup | undefined {
  if (process.getuid?.() !== 0) return undefined;
  made += 1;
  const places = cgroupPlaces(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'), () => '');
  const dirs = places.map(({ dir }) => join(dir, `outwork-test-${process.pid}-${made}`));
  for (const dir of dirs) {
    mkdirSync(dir);
    for (const path of [dir, join(dir, 'cgroup.procs')]) chownSync(path, user.uid, user.uid);
    writeFileSync(join(dir, 'cgroup.procs'), String(pid));
  }
  return { remove: async () => dirs.forEach(removeGroup) };
}

/** What a crashed kernel left of groups below goes first. */
function removeGroup(dir: string): void {
  for (let tries = 0; ; tries += 1) {
    try {
      rmdirSync(dir);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || tries > 200) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
