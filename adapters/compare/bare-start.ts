import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { EngineName } from '../../core/run/types.ts';

/** The least that starts Node behind this engine's wall: the same namespaces, no id range, no guest, no token, no socket. */
const COMMANDS: Partial<Record<EngineName, readonly string[]>> = {
  bubblewrap: [
    ...['unshare', '--user', '--map-root-user', '--'],
    ...['bwrap', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup'],
    ...['--as-pid-1', '--new-session', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    // Node may lie below the /tmp that has just been covered.
    ...['--ro-bind', process.execPath, '/tmp/node', '--', '/tmp/node', '-e', '0'],
  ],
};

/** Wall time of one bare start, from spawn to exit; undefined where no such command is known. Rejects when it fails. */
export async function bareStartMs(engine: EngineName): Promise<number | undefined> {
  const [program, ...args] = COMMANDS[engine] ?? [];
  if (program === undefined) return undefined;
  const startedAt = performance.now();
  const child = spawn(program, args, { stdio: 'ignore', env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`a bare start ended with ${code}`);
  return performance.now() - startedAt;
}
