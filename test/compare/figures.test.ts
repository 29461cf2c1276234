import { expect, test } from 'vitest';
import { figuresOf } from '../../adapters/compare/figures.ts';
import type { RoundReply, UsageReply } from '../../adapters/compare/protocol.ts';
import type { PlacementRecord } from '../../adapters/compare/record.ts';
import type { TurnSample } from '../../adapters/compare/turn.ts';
import type { MeasureSnapshot } from '../../core/measure.ts';

const MiB = 1024 * 1024;
const FLOOR = { commitMs: 0.5, roundTripMs: 0.2, bareStartMs: 60 };

const turn = (change: Partial<TurnSample> = {}): TurnSample => ({
  run: 'run_1',
  ended: 'completed',
  detail: undefined,
  ms: 100,
  commandMs: 20,
  commandFaults: [],
  shellMs: [5, 7],
  sandboxes: ['sbx_1'],
  attempts: 1,
  seat: { engine: 'bubblewrap', placement: 'persistent-per-user' },
  seatMs: 3,
  replies: 1,
  ...change,
});

const snapshot = (requests: number, commits: number, modelMs: number): MeasureSnapshot => ({
  commits,
  membrane: { requests, hostToSandbox: requests / 10, bytes: requests * 100, connections: 2 },
  model: { calls: 6, wallMs: modelMs },
  sandboxes: [],
});

const round = (sample: TurnSample): RoundReply => ({ samples: [sample], before: snapshot(100, 50, 10), after: snapshot(130, 90, 15) });

const usage = (kernel: number, sandbox: number): UsageReply => ({
  kernelBytes: kernel * MiB,
  sandboxBytes: sandbox * MiB,
  processes: 4,
  connections: 2,
});

const record = (change: Partial<PlacementRecord> = {}): PlacementRecord => ({
  placement: 'persistent-per-user',
  engine: 'bubblewrap',
  first: turn({ seatMs: 150 }),
  rounds: [round(turn()), round(turn({ ms: 200 }))],
  watched: { sample: turn(), idle: usage(70, 30), active: usage(75, 40) },
  kill: { kind: 'resumed', ms: 321, sample: turn({ attempts: 2 }) },
  diskBytes: MiB / 2,
  ...change,
});

test('overhead is turn time less commands and model, the floor is what commits and round trips take', async () => {
  const { result, unmeasured } = await figuresOf(record(), FLOOR);
  expect(result.latencyMs?.p50).toBe(150);
  expect(result.overheadMs?.p50).toBe(150 - 20 - 5);
  // 40 commits, 30 requests, 3 messages at half a round trip.
  expect(result.floorMs?.p50).toBe(40 * 0.5 + 31.5 * 0.2);
  expect(result.calls).toEqual({ membranePerTurn: 30, hostToSandboxPerTurn: 3, bytesPerTurn: 3000, commitsPerTurn: 40 });
  expect(result.memoryMiB).toEqual({ idle: 100, active: 115 });
  expect(result.coldStartMs).toEqual({ p50: 150 });
  expect(result.killToResumeMs).toEqual({ p50: 321 });
  expect(unmeasured).toEqual([]);
});

test('a turn in a sandbox that was not seen before is cold, and its floor has a bare start', async () => {
  const rounds = [round(turn({ sandboxes: ['sbx_2'], seatMs: 140 })), round(turn({ sandboxes: ['sbx_3'], seatMs: 160 }))];
  const { result } = await figuresOf(record({ rounds }), FLOOR);
  expect(result.samples.map((sample) => sample.cold)).toEqual([true, true]);
  expect(result.coldStartMs).toEqual({ p50: 150 });
  expect(result.floorMs?.p50).toBe(40 * 0.5 + 31.5 * 0.2 + 60);
});

test('a failed turn is counted and does not enter the times', async () => {
  const rounds = [round(turn()), round(turn({ ms: 9000, ended: 'failed', replies: 0 }))];
  const { result } = await figuresOf(record({ rounds }), FLOOR);
  expect(result).toMatchObject({ turns: 2, failed: 1, lost: 0, latencyMs: { p50: 100, p99: 100 } });
});

test('a second reply is a duplicate, a completed run without one is a loss, also in the killed turn', async () => {
  const rounds = [round(turn({ replies: 3 })), round(turn({ replies: 0 }))];
  const kill = { kind: 'resumed', ms: 1, sample: turn({ replies: 2 }) } as const;
  const { result } = await figuresOf(record({ rounds, kill }), FLOOR);
  expect([result.duplicates, result.lost]).toEqual([3, 1]);
});

test('what could not be measured is null and says why', async () => {
  const kill = { kind: 'none', why: 'the killed run ended as parked', sample: undefined } as const;
  const { result, unmeasured } = await figuresOf(record({ kill, rounds: [round(turn({ ended: 'failed' }))] }), {
    ...FLOOR,
    commitMs: null,
  });
  expect(result).toMatchObject({ killToResumeMs: null, latencyMs: null, overheadMs: null, floorMs: null, shellMs: null });
  expect(Object.fromEntries(unmeasured.map(({ field, why }) => [field.split('.')[1], why]))).toMatchObject({
    killToResumeMs: 'the killed run ended as parked',
    latencyMs: 'no turn completed',
    shellMs: 'no turn completed',
  });
});
