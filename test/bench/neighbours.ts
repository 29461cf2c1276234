import { quantile, rounded } from '../../adapters/compare/quantile.ts';
import { type E2e, e2e, scenario } from '../support/e2e.ts';
import type { Figure } from './figure.ts';

const WARM_UP = 2;
const TURNS = 9;
const TARGET = 2;

/** What one user's sandbox does for as long as the other's turns are measured. */
const LOADS: Readonly<Record<string, readonly string[]>> = {
  forkBomb: ['perl', '-e', 'while (1) { my $pid = fork; if (defined $pid && !$pid) { 1 while 1 } }'],
  memoryHog: ['sh', '-c', `while :; do perl -e 'my @all; push @all, "x" x 50_000_000 while 1'; done`],
  diskFiller: ['sh', '-c', 'while :; do head -c 500000000 /dev/zero >fill; rm -f fill; done'],
  outputFlood: ['yes', 'a line of a flood that never ends'],
};

const WORK = scenario(
  'neighbour',
  Array.from({ length: 5 }, () => ['sh', '-c', 'seq 2000 | sort -n | tail -1']),
);

/** Turns of one user while a sandbox of another takes all it can get, beside the same turns without it. */
export async function benchNeighbours(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, argv] of Object.entries(LOADS)) {
    await using world = await e2e({ users: ['ada', 'bob'], scenario: WORK });
    const alone = await medianTurn(world);
    await world.switchScenario(scenario('load', [['true']], { background: argv }));
    const { calls } = await world.turn('go', { user: 'bob' });
    const started = calls.find(({ capability }) => capability === 'shell.exec')?.outcome;
    if (started?.kind !== 'result') throw new Error(`the load ${name} did not start`);
    await world.switchScenario(WORK);
    const measured = await medianTurn(world);
    const ratio = measured / alone;
    figures.push({
      id: `neighbours.${name}TurnMs.p50`,
      target: `≤ ${TARGET} × the turn alone`,
      measured: rounded(measured),
      baseline: rounded(alone),
      ratio: rounded(ratio),
      met: ratio <= TARGET,
    });
  }
  return figures;
}

async function medianTurn(world: E2e): Promise<number> {
  const times: number[] = [];
  for (let turn = -WARM_UP; turn < TURNS; turn += 1) {
    const started = performance.now();
    const { run } = await world.turn('work', { user: 'ada' });
    if (run.state !== 'completed') throw new Error(`a turn of the bench ended as ${run.state}`);
    if (turn >= 0) times.push(performance.now() - started);
  }
  return quantile(times, 0.5) ?? Number.NaN;
}
