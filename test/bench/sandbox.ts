import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBubblewrapEngine } from '../../adapters/sandbox/bubblewrap/engine.ts';
import { readSubIds } from '../../adapters/sandbox/slices.ts';
import { systemClock } from '../../core/seams/clock.ts';
import type { SandboxEngine } from '../../core/seams/sandbox-engine.ts';
import type { Figure } from './figure.ts';

const WARM_UP = 3;
const ROUNDS = 15;
const RATIO = 1.6;

const GUEST = `require('node:net').connect(process.env.OUTWORK_SOCKET).write('first line\\n')`;

/**
 * Cold start of a sandbox of the bubblewrap engine, from the making of its socket directory to the first line its guest writes on the
 * membrane socket, beside the least one could do: unshare, bwrap, `node -e 0`, until its exit. Both in turn, so that both see the same
 * machine.
 */
export async function benchSandbox(): Promise<Figure[]> {
  const dir = await mkdtemp(join(tmpdir(), 'ob-'));
  const guestBundle = join(dir, 'guest.cjs');
  await writeFile(guestBundle, GUEST);
  const engine = createBubblewrapEngine({ stateDir: dir, guestBundle, nodeBinary: process.execPath, clock: systemClock });
  const bare: number[] = [];
  const cold: number[] = [];
  const memory: number[] = [];
  try {
    for (let round = -WARM_UP; round < ROUNDS; round += 1) {
      const bareMs = await timeBare();
      const { ms, memoryBytes } = await timeCold(engine, dir, `r${round + WARM_UP}`);
      if (round < 0) continue;
      bare.push(bareMs);
      cold.push(ms);
      memory.push(memoryBytes / (1024 * 1024));
    }
  } finally {
    await engine.sweep();
    await rm(dir, { recursive: true, force: true });
  }
  const measured = median(cold);
  const baseline = median(bare);
  const ratio = measured / baseline;
  return [
    { id: 'sandbox.coldStartMs', target: `≤ ${RATIO} × bare`, measured, baseline, ratio, met: ratio <= RATIO },
    {
      id: 'sandbox.emptyGuestMemoryMiB',
      target: '≤ 60 MiB',
      measured: median(memory),
      baseline: null,
      ratio: null,
      met: median(memory) <= 60,
    },
  ];
}

async function timeBare(): Promise<number> {
  const { uids, gids } = await readSubIds();
  const ids = [`--map-users=${uids.start},0,1`, `--map-groups=${gids.start},0,1`, '--setuid', '0', '--setgid', '0'];
  const walls = ['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup', '--die-with-parent'];
  const mounts = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
  const started = performance.now();
  const child = spawn('unshare', [...ids, 'bwrap', ...walls, ...mounts, process.execPath, '-e', '0'], { stdio: 'ignore', cwd: '/' });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the bare start ended with ${code}`);
  return performance.now() - started;
}

async function timeCold(engine: SandboxEngine, dir: string, generation: string): Promise<{ ms: number; memoryBytes: number }> {
  const socketDir = join(dir, 's', generation);
  const socketPath = join(socketDir, 'membrane.sock');
  const owner = { tenant: 'bench', user: 'bench', slice: 0 };
  const started = performance.now();
  await engine.prepareSocketDir({ socketDir, slice: owner.slice });
  const server = createServer().listen(socketPath);
  await once(server, 'listening');
  await engine.grantSocket(socketPath, owner.slice);
  const connection = once(server, 'connection');
  const paths = { socketDir, workspaceDir: join(dir, 'workspace', 'bench'), homeDir: join(dir, 'home', 'bench') };
  const handle = await engine.start({ ...owner, ...paths, generation, token: 'bench' });
  const [socket] = await connection;
  await once(socket, 'data');
  const ms = performance.now() - started;
  const { memoryBytes } = await handle.usage();
  await handle.stop();
  server.close();
  return { ms, memoryBytes };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
