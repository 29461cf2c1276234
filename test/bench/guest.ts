import { spawn } from 'node:child_process';
import { startGuest } from '../support/guest-process.ts';
import type { Figure } from './figure.ts';

const WARM_UP = 20;
const COMMANDS = 200;
const TARGET_MS = 5;

/**
 * What a command costs beyond a bare spawn of the same program, both measured in turn in the same run: FIFOs, its own gid, capture, the
 * look for what it left behind, and the two messages that bring it to the guest and back.
 */
export async function benchGuest(): Promise<Figure[]> {
  await using guest = await startGuest({ ownProcesses: true });
  const bare: number[] = [];
  const run: number[] = [];
  for (let i = 0; i < WARM_UP + COMMANDS; i += 1) {
    const bareMs = await timed(() => bareSpawn(['/bin/true']));
    const runMs = await timed(() => guest.membrane.exec('run_bench', { argv: ['/bin/true'] }));
    if (i < WARM_UP) continue;
    bare.push(bareMs);
    run.push(runMs);
  }
  const baseline = median(bare);
  const measured = median(run);
  return [
    {
      id: 'guest.commandMs',
      target: `≤ ${TARGET_MS} ms over a bare spawn`,
      measured: round(measured),
      baseline: round(baseline),
      ratio: round(measured / baseline),
      met: measured - baseline <= TARGET_MS,
    },
  ];
}

function bareSpawn([program, ...args]: readonly [string, ...string[]]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: {} });
    child.on('error', reject);
    child.on('close', () => resolve());
    child.stdout.resume();
    child.stderr.resume();
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const round = (value: number): number => Math.round(value * 100) / 100;
