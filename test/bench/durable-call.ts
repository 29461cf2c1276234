import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileArgumentChecks } from '../../adapters/argument-check.ts';
import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import { openCommitFloor } from '../../adapters/compare/floor.ts';
import { quantile, rounded } from '../../adapters/compare/quantile.ts';
import { packageFolder } from '../../adapters/config.ts';
import { createPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { type CallDeps, call } from '../../core/capability/call.ts';
import { LocalPermits } from '../../core/capability/permits.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import type { CallScope, CommandOutcome } from '../../core/capability/types.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { Seat } from '../../core/ports/placement.ts';
import { LiveRuns } from '../../core/run/live-runs.ts';
import { systemClock } from '../../core/seams/clock.ts';
import type { Figure } from './figure.ts';

const WARM_UP = 50;
const CALLS = 500;

/**
 * A whole capability call through the real pipeline, policy and store: two durable writes and a decision. Only the command is not run.
 * The baseline is two bare commits of the same machine in the same run.
 */
export async function benchDurableCall(): Promise<Figure[]> {
  const directory = await mkdtemp(join(tmpdir(), 'ow-bench-'));
  try {
    const { deps, scope, close } = await kernelParts(directory);
    const floor = openCommitFloor(directory);
    const times: number[] = [];
    const commits: number[] = [];
    for (let step = 0; step < WARM_UP + CALLS; step += 1) {
      const startedAt = performance.now();
      await call(deps, scope, { key: { step, call: 0 }, capability: 'shell.exec', args: { argv: ['git', 'status'] } });
      const ms = performance.now() - startedAt;
      const bareMs = floor.sampleMs() + floor.sampleMs();
      if (step < WARM_UP) continue;
      times.push(ms);
      commits.push(bareMs);
    }
    floor.close();
    await close();
    return [figure('p50', 0.5, 2, times, commits), figure('p99', 0.99, 15, times, commits)];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function figure(name: string, q: number, targetMs: number, times: readonly number[], commits: readonly number[]): Figure {
  const measured = quantile(times, q) ?? Number.NaN;
  const baseline = quantile(commits, q) ?? Number.NaN;
  const ratio = measured / baseline;
  const id = `turn.durableCallMs.${name}`;
  return {
    id,
    target: `≤ ${targetMs} ms`,
    measured: rounded(measured),
    baseline: rounded(baseline),
    ratio: rounded(ratio),
    met: measured <= targetMs,
  };
}

async function kernelParts(directory: string): Promise<{ deps: CallDeps; scope: CallScope; close(): Promise<void> }> {
  const clock = systemClock;
  const store = await openSqliteStore({ file: join(directory, 'outwork.db') });
  const policy = await createPolicyEngine({ dir: packageFolder('policies'), clock, pollMs: 60_000, onEvent: () => {} });
  await store.users.add({ tenant: 'bench', name: 'ada', roles: ['user'], nowMs: clock.now() });
  await store.threads.post({ tenant: 'bench', actor: 'ada', origin: 'operator', body: 'go', nowMs: clock.now() });
  const deadlineMs = clock.now() + CAPACITY.runDeadlineMs;
  const run = await store.runs.claim({ holder: 'bench', nowMs: clock.now(), leaseMs: CAPACITY.runDeadlineMs, deadlineMs, perUser: 1 });
  if (run === undefined) throw new Error('the run could not be claimed');
  const scope: CallScope = {
    ...{ tenant: 'bench', user: 'ada', roles: ['user'], thread: run.thread, run: run.id, fence: run.fence, origin: 'operator' },
    ...{ placement: 'host-loop-shell', engine: 'bubblewrap', wall: 'namespaces', caller: 'executor', deadlineMs, sandbox: 'sbx_bench' },
  };
  const live = new LiveRuns();
  const seat = { harness: 'scripted', tools: { exec: async () => OUTCOME } } as unknown as Seat;
  const { signal } = new AbortController();
  live.add({
    scope,
    seat,
    signal,
    gate: undefined,
    cancelRequested: false,
    steeringWaits: false,
    cancel: () => {},
    exit: Promise.withResolvers(),
  });
  const deps: CallDeps = {
    ...{ clock, store, policy, live, capacity: CAPACITY },
    model: { generate: () => Promise.reject(new Error('no model here')) },
    permits: new LocalPermits(),
    reservations: new Reservations({ concurrentCalls: 4, callsPerRun: WARM_UP + CALLS }),
    broker: noSecrets,
    egress: { revoke: () => Promise.resolve(), openRequests: () => 0 },
    argumentFault: compileArgumentChecks(),
    onMessage: () => {},
  };
  const close = async (): Promise<void> => {
    await policy.close();
    await store.close();
  };
  return { deps, scope, close };
}

const OUTCOME: CommandOutcome = {
  ...{ exitCode: 0, signal: null, timedOut: false, stdout: 'clean\n', stderr: '', stdoutBytes: 6, stderrBytes: 0, truncated: false },
  wallMs: 1,
};
