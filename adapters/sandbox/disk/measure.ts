import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { HOST_ENV } from '../host-env.ts';
import { SLICE_GIDS, SLICE_UIDS, type Slice } from '../slices.ts';

/** What a measurement may take; a tree that cannot be read in that time counts as too large. */
export const MEASURE_MS = 60_000;

/** The parents' descriptors in the child, from here on. */
const FIRST_FD = 3;

/**
 * Bytes that the roots of one owner take on disk, sparse parts not counted; undefined when they could not be measured in time.
 *
 * The kernel opens the roots' parents, which it alone writes, and nothing below. The walk is du(1) with the owner's ids and with
 * capabilities over nothing but the owner's files (so a directory that a tool has closed is counted too), at the lowest priority. It
 * follows no link and leaves no file system. Files that are deleted and still open are not seen: the free space of the file system tells.
 */
export async function measureRoots(roots: readonly string[], owner: Slice): Promise<number | undefined> {
  const parents = roots.map((root) => openSync(dirname(root), constants.O_RDONLY | constants.O_DIRECTORY));
  try {
    const paths = roots.map((root, i) => `/proc/self/fd/${FIRST_FD + i}/${basename(root)}`);
    return await sum(spawn('unshare', command(owner, paths), options(parents)));
  } finally {
    for (const parent of parents) closeSync(parent);
  }
}

/** Both id ranges start at the executor, which is 0 inside; the tools' ids follow. */
function command(owner: Slice, paths: readonly string[]): string[] {
  return [
    ...[`--map-users=${owner.executorUid},0,${SLICE_UIDS}`, `--map-groups=${owner.executorGid},0,${SLICE_GIDS}`],
    ...['--setuid', '0', '--setgid', '0', '--', 'nice', '-n', '19'],
    ...['du', '--summarize', '--total', '--one-file-system', '--block-size=1', '--', ...paths],
  ];
}

const options = (parents: readonly number[]): SpawnOptions => ({
  env: HOST_ENV,
  cwd: '/',
  detached: true,
  timeout: MEASURE_MS,
  killSignal: 'SIGKILL',
  stdio: ['ignore', 'pipe', 'ignore', ...parents],
});

/** du's last line is the total. It also ends with 1 when something vanished under it, which is no fault. */
function sum(child: ChildProcess): Promise<number | undefined> {
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4096);
  });
  return new Promise((resolve) => {
    child.once('error', () => resolve(undefined));
    child.once('close', () => {
      const total = /^(\d+)\ttotal$/m.exec(text)?.[1];
      resolve(total === undefined ? undefined : Number(total));
    });
  });
}
