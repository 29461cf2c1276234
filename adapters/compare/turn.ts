import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { EventType, KernelEvent } from '../../core/events.ts';
import type { KernelOperations, RunView } from '../../core/kernel.ts';
import type { CallRow } from '../../core/ports/store.ts';
import type { EngineName, PlacementName } from '../../core/run/types.ts';

export interface TurnRequest {
  readonly tenant: string;
  readonly user: string;
  readonly placement: PlacementName;
  readonly body: string;
  /** Longest time until the run must have stopped. */
  readonly limitMs: number;
}

/** One turn as it was seen from outside the kernel, and from its records afterwards. */
export interface TurnSample {
  readonly run: string;
  /** Where the turn stopped; `parked` is a stop too. */
  readonly ended: 'completed' | 'failed' | 'cancelled' | 'parked';
  /** Failure code or gate, for people. */
  readonly detail: string | undefined;
  /** From the posting of the message to the end of the run, by the kernel's own monotonic clock: whole milliseconds. */
  readonly ms: number;
  /** Sum of the commands' own wall time. */
  readonly commandMs: number;
  /** Of each command: from the opening of its ledger row to its close. */
  readonly shellMs: readonly number[];
  /** Of each command that did not exit with 0, and of each call that was refused: what happened, for people. */
  readonly commandFaults: readonly string[];
  /** Sandbox of each attempt, in order. */
  readonly sandboxes: readonly string[];
  readonly attempts: number;
  /** Engine and placement of the last attempt, as the kernel recorded them. */
  readonly seat: { readonly engine: EngineName | undefined; readonly placement: PlacementName | undefined };
  /** Of the last attempt: from claim to seat. */
  readonly seatMs: number | undefined;
  readonly replies: number;
}

const ENDS: Partial<Record<EventType, TurnSample['ended']>> = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
  'run.parked': 'parked',
};

export const endOf = (event: KernelEvent): TurnSample['ended'] | undefined => ENDS[event.type];

/** Between two looks at the log while a timed turn runs. */
const LOOK_EVERY_MS = 20;

/**
 * Reads the event log from `cursor` on until `wanted` holds; gives that event.
 *
 * @param limitMs after that time it rejects
 * @param lookEveryMs without it the log is read at every change, which costs the kernel about 0.2 ms each time
 */
export async function waitForEvent(
  kernel: KernelOperations,
  cursor: number,
  wanted: (event: KernelEvent) => boolean,
  limitMs: number,
  lookEveryMs?: number,
): Promise<KernelEvent> {
  const deadline = performance.now() + limitMs;
  let from = cursor;
  for (;;) {
    const events = await kernel.events(from, {}, 500);
    for (const event of events) if (wanted(event)) return event;
    from = events.at(-1)?.cursor ?? from;
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) throw new Error(`the awaited event did not come within ${limitMs} ms`);
    if (lookEveryMs !== undefined) await sleep(lookEveryMs);
    else if (events.length === 0) await kernel.eventsChanged(from, Math.min(leftMs, 1000));
  }
}

/** Where the log ends now. */
export async function lastCursor(kernel: KernelOperations): Promise<number> {
  let cursor = 0;
  for (;;) {
    const last = (await kernel.events(cursor, {}, 1000)).at(-1);
    if (last === undefined) return cursor;
    cursor = last.cursor;
  }
}

/**
 * Posts one message in a new thread and waits for the end of its run. The turn's time is taken from what the kernel recorded, so that
 * looking on seldom is enough and does not lengthen it.
 */
export async function runTurn(kernel: KernelOperations, turn: TurnRequest): Promise<TurnSample> {
  const { tenant, user, placement, body } = turn;
  const cursor = await lastCursor(kernel);
  const { run } = await kernel.post({ tenant, user, placement, body });
  const isEnd = (event: KernelEvent): boolean => event.run === run.id && endOf(event) !== undefined;
  const ended = await waitForEvent(kernel, cursor, isEnd, turn.limitMs, LOOK_EVERY_MS);
  return await readSample(kernel, run.id, ended.atMs - run.createdAtMs);
}

/** What the records say about a run that has stopped. */
export async function readSample(kernel: KernelOperations, run: string, ms: number): Promise<TurnSample> {
  const view = await kernel.showRun(run);
  const commands = view.calls.filter((row) => row.capability === 'shell.exec' && row.outcome?.kind === 'result');
  const thread = await kernel.showThread(view.run.tenant, view.run.thread);
  return {
    run,
    ended: stateOf(view),
    detail: view.run.failure ?? view.run.gate?.reason,
    ms,
    commandMs: commands.reduce((sum, row) => sum + wallMsOf(row), 0),
    commandFaults: view.calls.filter((row) => row.capability === 'shell.exec').flatMap((row) => commandFault(row) ?? []),
    shellMs: commands.flatMap((row) => (row.closedAtMs === undefined ? [] : [row.closedAtMs - row.openedAtMs])),
    sandboxes: view.attempts.flatMap((attempt) => attempt.sandbox ?? []),
    attempts: view.attempts.length,
    seat: { engine: view.attempts.at(-1)?.engine, placement: view.attempts.at(-1)?.placement },
    seatMs: await seatMs(kernel, view),
    replies: thread.messages.filter((message) => message.author === 'agent' && message.run === run).length,
  };
}

function stateOf(view: RunView): TurnSample['ended'] {
  const { state, id } = view.run;
  if (state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'parked') return state;
  throw new Error(`${id} is ${state}: it has not stopped`);
}

function commandFault({ outcome, summary }: CallRow): string | undefined {
  if (outcome === undefined) return `${summary}: no outcome`;
  if (outcome.kind === 'denied') return `${summary}: denied (${outcome.reasons.map((reason) => reason.code).join(', ')})`;
  if (outcome.kind === 'error') return `${summary}: ${outcome.code}`;
  const { exitCode, stderr } = outcome.result as unknown as Partial<CommandOutcome>;
  return exitCode === 0 ? undefined : `${summary}: exit ${exitCode ?? 'none'} ${(stderr ?? '').trim().slice(0, 200)}`;
}

function wallMsOf(row: CallRow): number {
  if (row.outcome?.kind !== 'result') return 0;
  const { wallMs } = row.outcome.result as unknown as Partial<CommandOutcome>;
  return typeof wallMs === 'number' ? wallMs : 0;
}

async function seatMs(kernel: KernelOperations, view: RunView): Promise<number | undefined> {
  const events = await kernel.events(0, { run: view.run.id }, 1000);
  const claimed = events.findLast((event) => event.type === 'run.claimed');
  const placed = events.findLast((event) => event.type === 'run.placed');
  return claimed === undefined || placed === undefined ? undefined : placed.atMs - claimed.atMs;
}
