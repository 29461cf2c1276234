import type { CompareResults, PlacementResult } from '../../adapters/compare/results.ts';

/** Results of the shape that a run gives, with figures made up for tests of what is shown. */
export function sampleResults(): CompareResults {
  return {
    schema: 1,
    createdAt: '2026-01-02T03:04:05.678Z',
    machine: {
      os: 'Debian GNU/Linux 12 (bookworm)',
      kernel: '6.1.0',
      arch: 'x64',
      cpu: 'Example CPU @ 2.50GHz',
      cores: 2,
      memoryMiB: 24_105,
      node: 'v24.22.3',
      stateFilesystem: 'ext4',
      loadBefore: 0.25,
    },
    engines: [{ name: 'bubblewrap', wall: 'namespaces', version: 'bubblewrap 0.8.0' }],
    workload: {
      name: 'survey',
      turns: 10,
      concurrency: 1,
      quick: false,
      repository: { name: 'example', commit: 'abc1234', files: 321, bundleMiB: 1.25, history: 'full' },
    },
    floor: { commitMs: 0.45, roundTripMs: 0.21, bareStartMs: 62 },
    unmeasured: [
      { field: 'newCli', why: 'this version has no credential recipes' },
      { field: 'attacks', why: 'attacks are run by the tests' },
      { field: 'disposable-per-run/bubblewrap.killToResumeMs', why: 'the killed run ended as parked: the end of a command is not known' },
    ],
    placements: [
      placement('host-loop-shell', 41, [38, 44, 40, 39, 43, 47, 41, 40, 88, 41], { kernel: [71, 84], sandbox: [24, 31] }, 30_512),
      placement(
        'disposable-per-run',
        171,
        [166, 171, 189, 170, 168, 172, 244, 169, 175, 171],
        { kernel: [66, 72], sandbox: [0, 38] },
        null,
      ),
      placement('persistent-per-user', 36, [35, 36, 38, 34, 36, 52, 35, 36, 37, 36], { kernel: [66, 71], sandbox: [29, 41] }, 192),
    ],
  };
}

function placement(
  name: PlacementResult['placement'],
  p50: number,
  times: readonly number[],
  parts: { readonly kernel: readonly [number, number]; readonly sandbox: readonly [number, number] },
  resumeMs: number | null,
): PlacementResult {
  const { kernel, sandbox } = parts;
  const byExecutor = name !== 'host-loop-shell';
  return {
    placement: name,
    engine: 'bubblewrap',
    turns: times.length,
    failed: 0,
    latencyMs: { p50, p95: Math.max(...times) * 0.95, p99: Math.max(...times) * 0.99 },
    coldStartMs: { p50: 121 },
    overheadMs: { p50: p50 - 15, p95: p50 + 5 },
    floorMs: { p50: p50 / 3 },
    shellMs: { p50: 4 },
    memoryMiB: { idle: kernel[0] + sandbox[0], active: kernel[1] + sandbox[1] },
    memoryPartsMiB: { kernel: { idle: kernel[0], active: kernel[1] }, sandbox: { idle: sandbox[0], active: sandbox[1] } },
    processes: { idle: sandbox[0] === 0 ? 1 : 4, active: 6 },
    connections: { idle: sandbox[0] === 0 ? 0 : 1, active: 2 },
    calls: { membranePerTurn: byExecutor ? 31 : 6, hostToSandboxPerTurn: byExecutor ? 2 : 5, bytesPerTurn: 61_234, commitsPerTurn: 38.5 },
    killToResumeMs: resumeMs === null ? null : { p50: resumeMs },
    duplicates: 0,
    lost: 0,
    protocol: { operations: byExecutor ? 11 : 3 },
    code: { files: byExecutor ? 9 : 1, lines: byExecutor ? 912 : 88 },
    deployment: { daemons: 0, images: 0, diskMiB: 0.62, privileges: ['unprivileged user namespaces'] },
    newCli: null,
    enforcement: {
      'model.generate': 'kernel',
      'shell.background': 'kernel',
      'shell.exec': byExecutor ? 'executor' : 'kernel',
      'fs.read': 'kernel',
      'fs.write': 'kernel',
      'fs.list': 'kernel',
      'message.post': 'kernel',
      'thread.read': 'kernel',
      'checkpoint.save': 'kernel',
    },
    attacks: null,
    samples: times.map((ms, index) => ({ turn: index + 1, ms, cold: name === 'disposable-per-run', completed: true })),
  };
}
