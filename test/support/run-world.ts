import { call } from '../../core/capability/call.ts';
import type { CallRequest } from '../../core/capability/types.ts';
import type { CompiledConfig } from '../../core/config.ts';
import { CAPACITY, SANDBOX_LIMITS } from '../../core/limits.ts';
import type { Executor, ExecutorTask } from '../../core/ports/executor.ts';
import type { Placement } from '../../core/ports/placement.ts';
import { executeRun, type RunDeps } from '../../core/run/execute-run.ts';
import type { LiveRun } from '../../core/run/live-runs.ts';
import type { ClaimedRun, ExecutorOutcome, PlacementName, Run } from '../../core/run/types.ts';
import { type CallWorld, callWorld, type WorldOptions } from './call-world.ts';

export const testConfig = (change: Partial<CompiledConfig> = {}): CompiledConfig => ({
  file: undefined,
  profile: 'development',
  stateDir: '/nonexistent',
  engine: 'bubblewrap',
  placement: 'host-loop-shell',
  runsPerUser: 1,
  harness: 'scripted',
  model: { gateway: 'scripted', scenario: 'survey' },
  policy: { dir: 'policies' },
  capacity: CAPACITY,
  limits: SANDBOX_LIMITS,
  tenants: {},
  log: { level: 'info' },
  api: { listen: '127.0.0.1:0', nonLoopback: undefined, hosts: [], metrics: 'operator' },
  ...change,
});

export interface RunWorld {
  readonly world: CallWorld;
  readonly deps: RunDeps;
  /** What happened around the executor, in order. */
  readonly log: string[];
  /** Posts a message of the user and claims its run. */
  claim(body?: string): Promise<ClaimedRun>;
  /** One attempt of a claimed run. */
  execute(run: ClaimedRun, control?: { signal?: AbortSignal; closing?: AbortSignal; onLive?: (run: LiveRun) => void }): Promise<Run>;
  /** A call of the run that is seated, as its executor makes it. */
  call(task: ExecutorTask, request: CallRequest): ReturnType<typeof call>;
}

/** Everything of a run but the outside of the kernel: reference store, one placement whose executor is the test. */
export async function runWorld(
  script: (task: ExecutorTask, world: RunWorld) => Promise<ExecutorOutcome>,
  options: WorldOptions & { config?: Partial<CompiledConfig>; seatFails?: Error } = {},
): Promise<RunWorld> {
  const world = await callWorld(options);
  // The run that the call world seated is none of ours.
  world.deps.live.remove(world.scope.run);
  await world.store.runs.settle(world.scope, {
    to: 'completed',
    outcome: 'completed',
    event: { type: 'run.completed', data: {} },
    nowMs: world.clock.now(),
  });
  const log: string[] = [];
  const executor: Executor = { execute: (task) => script(task, self) };
  const placement = (name: PlacementName): Placement => ({
    name,
    engine: 'bubblewrap',
    wall: 'namespaces',
    async seat(run, harness) {
      log.push(`seat ${name} for ${run.actor}`);
      if (options.seatFails !== undefined) throw options.seatFails;
      return {
        engine: 'bubblewrap',
        wall: 'namespaces',
        sandbox: 'sbx_1',
        cold: true,
        harness,
        executor,
        tools: world.live.seat.tools,
        release: async (healthy) => void log.push(`release ${healthy ? 'healthy' : 'broken'}`),
      };
    },
    recycle: async () => void log.push(`recycle ${name}`),
  });
  const names: PlacementName[] = ['host-loop-shell', 'disposable-per-run', 'persistent-per-user'];
  const deps: RunDeps = {
    ...world.deps,
    config: testConfig(options.config),
    tokens: {
      mint: async () => 'token',
      verify: async () => undefined,
      revoke: (what) => void log.push('run' in what ? `revoke below ${what.belowFence}` : 'revoke sandbox'),
    },
    egress: { ...world.deps.egress, revoke: async () => void log.push('cut egress') },
    placements: new Map(names.map((name) => [name, placement(name)])),
  };
  const self: RunWorld = {
    world,
    deps,
    log,
    async claim(body = 'go') {
      await world.store.threads.post({ tenant: 'default', actor: 'ada', origin: 'operator', body, nowMs: world.clock.now() });
      return claimNext(world);
    },
    async execute(run, control = {}) {
      const never = new AbortController().signal;
      await executeRun(deps, run, {
        signal: control.signal ?? never,
        closing: control.closing ?? never,
        onLive: control.onLive ?? (() => {}),
      });
      const after = await world.store.runs.get(run.id);
      if (after === undefined) throw new Error('the run is gone');
      return after;
    },
    call: (task, request) => call(deps, task.scope, request),
  };
  return self;
}

export async function claimNext(world: CallWorld): Promise<ClaimedRun> {
  const run = await world.store.runs.claim({
    holder: 'here',
    nowMs: world.clock.now(),
    leaseMs: 30_000,
    deadlineMs: world.clock.now() + 1_800_000,
    perUser: 1,
  });
  if (run === undefined) throw new Error('nothing to claim');
  return run;
}
