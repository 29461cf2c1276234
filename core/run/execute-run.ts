import type { CallDeps } from '../capability/call.ts';
import { eventOf } from '../capability/reply.ts';
import type { CallScope } from '../capability/types.ts';
import type { CompiledConfig } from '../config.ts';
import { OutworkError, SandboxError, type SandboxErrorCode } from '../errors.ts';
import { CANCELLED } from '../ports/executor.ts';
import type { Placement } from '../ports/placement.ts';
import type { RunTokens } from '../seams/run-tokens.ts';
import type { LiveRun } from './live-runs.ts';
import { otherActorsOf } from './other-actors.ts';
import { pause } from './pause.ts';
import { choosePlacement } from './place.ts';
import { prepareRedrive } from './redrive.ts';
import { type Ending, endingOf, failed, settle } from './settle.ts';
import type { ClaimedRun, ExecutorOutcome, PlacementName, Role } from './types.ts';
import { isStoreFull } from './until-stored.ts';

export interface RunDeps extends CallDeps {
  readonly config: CompiledConfig;
  readonly tokens: RunTokens;
  readonly placements: ReadonlyMap<PlacementName, Placement>;
}

/** What the scheduler holds over a running attempt. */
export interface AttemptControl {
  /** Aborted when the lease is lost, the run's deadline passes or the kernel closes. */
  readonly signal: AbortSignal;
  /** Aborted when the kernel closes: an attempt that ends for it costs the run nothing. */
  readonly closing: AbortSignal;
  /** Called with the live run, so that a cancellation can reach it. */
  readonly onLive: (run: LiveRun) => void;
}

/**
 * One attempt of one claimed run, from claim to its next stop. The only caller of the executor port.
 *
 * 1. An earlier attempt is ended and its ledger judged. 2. Policy decides the placement. 3. The placement gives a seat.
 * 4. The executor works until it exits or is lost. 5. Its claim is checked against evidence, and one fenced write moves the run.
 */
export async function executeRun(deps: RunDeps, run: ClaimedRun, control: AttemptControl): Promise<void> {
  const ending = await attempt(deps, run, control);
  await settle(deps, run, ending, !control.closing.aborted, control.closing);
}

async function attempt(deps: RunDeps, run: ClaimedRun, control: AttemptControl): Promise<Ending> {
  try {
    const unknown = await prepareRedrive(deps, run);
    if (unknown !== undefined) return { kind: 'parked', gate: unknown };
    const roles = (await deps.store.users.get(run.tenant, run.actor))?.roles;
    if (roles === undefined) return failed('actor_unknown');
    const chosen = await choosePlacement(deps, run, roles);
    if ('failure' in chosen) return failed(chosen.failure, chosen.reasons, chosen.decision);
    return await inSeat(deps, run, chosen, roles, control);
  } catch (error) {
    const pauseMs = findsNoRoom(error) ? ROOM_MS[run.reclaims] : undefined;
    if (pauseMs !== undefined) await pause(deps.clock, pauseMs, control.signal);
    return endingOfError(error);
  } finally {
    deps.reservations.forget(run.id);
  }
}

async function inSeat(
  deps: RunDeps,
  run: ClaimedRun,
  { placement, harness, decision }: { placement: Placement; harness: string; decision: string | undefined },
  roles: readonly Role[],
  control: AttemptControl,
): Promise<Ending> {
  const seat = await placement.seat(run, harness);
  const abort = new AbortController();
  let healthy = false;
  try {
    const { engine, wall, sandbox, cold } = seat;
    await deps.store.runs.seat(
      { run: run.id, fence: run.fence },
      {
        placement: placement.name,
        engine,
        sandbox,
        event: eventOf({ ...run, run: run.id }, 'run.placed', {
          placement: placement.name,
          engine,
          sandbox,
          cold,
          fence: run.fence,
          ...(decision === undefined ? {} : { decision }),
        }),
        nowMs: deps.clock.now(),
      },
    );
    const scope: CallScope = {
      tenant: run.tenant,
      user: run.actor,
      roles,
      thread: run.thread,
      run: run.id,
      fence: run.fence,
      origin: run.origin,
      placement: placement.name,
      engine,
      wall,
      caller: 'executor',
      deadlineMs: run.deadlineMs,
      sandbox,
    };
    const signal = AbortSignal.any([control.signal, abort.signal]);
    const live: LiveRun = {
      scope,
      seat,
      signal,
      otherActors: await otherActorsOf(deps.store, run.thread, run.actor),
      gate: undefined,
      cancelRequested: run.cancelRequested,
      steeringWaits: true,
      cancel: () => abort.abort(CANCELLED),
      exit: Promise.withResolvers(),
    };
    deps.live.add(live);
    control.onLive(live);
    const outcome: ExecutorOutcome = await seat.executor.execute({ scope, harness, signal });
    healthy = outcome.kind === 'exited' || outcome.intact === true;
    return await endingOf(deps, run, live, outcome);
  } finally {
    // What still works for this attempt in the kernel, a loop or a model call, stops here.
    abort.abort();
    deps.live.remove(run.id);
    deps.permits.drop(run.id);
    deps.tokens.revoke({ run: run.id, belowFence: run.fence + 1 });
    await seat.release(healthy);
  }
}

/** A sandbox that found no room on the disk is tried again after so long: what fills a disk seldom goes at once, and often soon. */
const ROOM_MS: readonly number[] = [1000, 5000, 25_000];

const findsNoRoom = (error: unknown): boolean => error instanceof SandboxError && error.code === 'disk_full';

/** No other attempt finds more of these. */
const PERMANENT: ReadonlySet<SandboxErrorCode> = new Set(['slice_exhausted']);

/**
 * Trouble on the kernel's side of an attempt. What the machine, the configuration or policy lacks is lacking for every other attempt too: the
 * run fails at once, with that error's code and hint. A sandbox that did not come up or was lost is tried again, and so is what a full disk
 * refused.
 */
function endingOfError(error: unknown): Ending {
  if (isStoreFull(error)) return { kind: 'lost', reason: `${error.code}: ${error.message}`, cause: error };
  if (error instanceof OutworkError) {
    const { code, message, hint } = error;
    const cause = { code, message, hint };
    if (error instanceof SandboxError && !PERMANENT.has(error.code)) return { kind: 'lost', reason: `${code}: ${message}`, cause };
    return failed(code, [cause]);
  }
  return { kind: 'lost', reason: error instanceof Error ? error.message : String(error) };
}
