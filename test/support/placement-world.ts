import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileArgumentChecks } from '../../adapters/argument-check.ts';
import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import { guestExecutor } from '../../adapters/executor/guest-executor.ts';
import { hostLoopExecutor } from '../../adapters/executor/host-loop-executor.ts';
import { createMembrane } from '../../adapters/membrane/server.ts';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import { createScriptedGateway } from '../../adapters/model/scripted-gateway.ts';
import { disposablePerRun, hostLoopShell, persistentPerUser } from '../../adapters/placement/sandboxed.ts';
import { createBubblewrapEngine } from '../../adapters/sandbox/bubblewrap/engine.ts';
import { SandboxManager } from '../../adapters/sandbox/manager.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import type { CallDeps } from '../../core/capability/call.ts';
import { LocalPermits } from '../../core/capability/permits.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import type { CallScope } from '../../core/capability/types.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { Placement, Seat } from '../../core/ports/placement.ts';
import type { Store } from '../../core/ports/store.ts';
import { LiveRuns } from '../../core/run/live-runs.ts';
import type { ClaimedRun, ExecutorOutcome, PlacementName } from '../../core/run/types.ts';
import { steadyClock } from '../../core/seams/clock.ts';
import { createMembraneService } from '../../core/wire/membrane-service.ts';
import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { scriptedHarness } from '../../harnesses/scripted/harness.ts';
import { decision } from './call-world.ts';

/** A placement with everything real around it but the scheduler: the suite is the scheduler. */
export interface PlacementWorld extends AsyncDisposable {
  readonly placement: Placement;
  readonly sandboxes: SandboxManager;
  readonly store: Store;
  /** Posts a message of the user and claims its run. */
  claim(user?: string): Promise<ClaimedRun>;
  /** Lets the seat's executor work on the run, as an attempt would. */
  execute(run: ClaimedRun, seat: Seat, signal?: AbortSignal): Promise<ExecutorOutcome>;
}

export async function placementWorld(name: PlacementName, scenario: string): Promise<PlacementWorld> {
  const stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
  const clock = steadyClock();
  const store = createMemoryStore();
  const live = new LiveRuns();
  const tokens = await createRunTokens({ clock });
  const calls: CallDeps = {
    ...{ clock, store, live, capacity: CAPACITY },
    policy: {
      decide: () => decision(),
      status: () => ({ ready: true, digests: { rules: '', data: '' }, loadedAtMs: 0, reloadFault: undefined }),
      close: async () => {},
    },
    model: await createScriptedGateway({ scenario }),
    permits: new LocalPermits(),
    reservations: new Reservations({ concurrentCalls: 8, callsPerRun: 100 }),
    broker: noSecrets,
    egress: { revoke: async () => {}, openRequests: () => 0 },
    argumentFault: compileArgumentChecks(),
    onMessage: () => {},
  };
  const onError = (error: unknown) => {
    throw error;
  };
  const service = createMembraneService({ ...calls, progress: () => {}, onError });
  const { file, sha256 } = await ensureGuest();
  const membrane = await createMembrane({ service, tokens, clock, guestDigest: () => sha256 });
  const engine = createBubblewrapEngine({ stateDir, guestBundle: file, nodeBinary: process.execPath, clock });
  const sandboxes = new SandboxManager({
    ...{ stateDir, engine, membrane, tokens, clock, startMs: 20_000, idleMs: 600_000 },
    sliceOf: async ({ tenant, user }) => (await store.users.get(tenant, user))?.slice ?? 0,
    onEvent: () => {},
  });
  const inGuest = guestExecutor({ live, tokens, clock, cancelGraceMs: 2000 });
  const placements = {
    'host-loop-shell': () =>
      hostLoopShell({
        sandboxes,
        executor: hostLoopExecutor({ service, harnesses: new Map([['scripted', scriptedHarness]]), clock, cancelGraceMs: 2000 }),
      }),
    'disposable-per-run': () => disposablePerRun({ sandboxes, executor: inGuest }),
    'persistent-per-user': () => persistentPerUser({ sandboxes, executor: inGuest }),
  };
  for (const user of ['ada', 'bo']) await store.users.add({ tenant: 'default', name: user, roles: ['user'], nowMs: clock.now() });
  return {
    placement: placements[name](),
    sandboxes,
    store,
    async claim(user = 'ada') {
      const posted = await store.threads.post({ tenant: 'default', actor: user, origin: 'operator', body: 'go', nowMs: clock.now() });
      const claimed = await store.runs.claim({
        holder: 'suite',
        nowMs: clock.now(),
        leaseMs: 60_000,
        deadlineMs: clock.now() + 600_000,
        perUser: 9,
      });
      if (claimed?.id !== posted.run.id) throw new Error('another run was claimed');
      return claimed;
    },
    async execute(run, seat, signal = new AbortController().signal) {
      const { tenant, actor: user, thread, id, fence, origin, deadlineMs } = run;
      const { engine: engineName, wall, sandbox, harness } = seat;
      const scope: CallScope = {
        tenant,
        user,
        roles: ['user'],
        thread,
        run: id,
        fence,
        origin,
        placement: name,
        engine: engineName,
        wall,
        caller: 'executor',
        deadlineMs,
        sandbox,
      };
      live.add({
        scope,
        seat,
        signal,
        gate: undefined,
        cancelRequested: false,
        steeringWaits: true,
        cancel: () => {},
        exit: Promise.withResolvers(),
      });
      try {
        return await seat.executor.execute({ scope, harness, signal });
      } finally {
        live.remove(id);
      }
    },
    async [Symbol.asyncDispose]() {
      await sandboxes[Symbol.asyncDispose]();
      await membrane.close();
      rmSync(stateDir, { recursive: true });
    },
  };
}
