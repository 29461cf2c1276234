import type { Owner } from '../../core/ids.ts';
import type { Executor } from '../../core/ports/executor.ts';
import type { Placement, Seat } from '../../core/ports/placement.ts';
import type { ClaimedRun, PlacementName } from '../../core/run/types.ts';
import { type RunningSandbox, runKey, type SandboxManager, toolsOf, userKey } from '../sandbox/manager.ts';

export interface SandboxedPlacementDeps {
  readonly sandboxes: SandboxManager;
  /** Makes the executor that works in this seat. */
  readonly executor: (sandbox: RunningSandbox) => Executor;
}

const ownerOf = (run: ClaimedRun): Owner => ({ tenant: run.tenant, user: run.actor });

/** What the three placements share: a sandbox by key, an executor over it. They differ in the key, the executor and what `release` leaves. */
function placement(
  name: PlacementName,
  deps: SandboxedPlacementDeps,
  keyOf: (run: { id: string } & Owner) => string,
  keeps: boolean,
): Placement {
  const { sandboxes } = deps;
  return {
    name,
    engine: sandboxes.engine.name,
    wall: sandboxes.engine.wall,
    async seat(run, harness): Promise<Seat> {
      const owner = ownerOf(run);
      const key = keyOf({ id: run.id, ...owner });
      const { sandbox, cold } = await sandboxes.acquire(key, owner);
      return {
        engine: sandboxes.engine.name,
        wall: sandboxes.engine.wall,
        sandbox: sandbox.generation,
        cold,
        harness,
        executor: deps.executor(sandbox),
        tools: toolsOf(sandbox, run.id),
        async release(healthy) {
          if (keeps && healthy) sandboxes.release(key, sandbox.generation);
          else await sandboxes.stop(key, healthy ? 'run ended' : 'executor lost');
        },
      };
    },
    recycle: (run) => sandboxes.stop(keyOf(run), 'redrive'),
  };
}

/** The loop runs in the kernel process; commands are dispatched into the user's sandbox. */
export const hostLoopShell = (deps: SandboxedPlacementDeps): Placement => placement('host-loop-shell', deps, userKey, true);

/** The executor lives in the user's long-lived sandbox: adopted by the next run, with files, background processes and a warm executor. */
export const persistentPerUser = (deps: SandboxedPlacementDeps): Placement => placement('persistent-per-user', deps, userKey, true);

/** A fresh sandbox for each run; nothing but the workspace and HOME roots outlives it. */
export const disposablePerRun = (deps: SandboxedPlacementDeps): Placement =>
  placement('disposable-per-run', deps, (run) => runKey(run.id), false);
