import type { Approval } from '../../../core/approval/types.ts';
import type { Amounts } from '../../../core/capability/ceilings.ts';
import { StoreError } from '../../../core/errors.ts';
import type { KernelEvent, NewEvent } from '../../../core/events.ts';
import type { IdKind } from '../../../core/ids.ts';
import type { CallRow, Checkpoint, DecisionRow, DeliveryRow } from '../../../core/ports/store.ts';
import type { Attempt, AttemptRef, Message, Run, Thread, User } from '../../../core/run/types.ts';
import type { ChangeSignal } from '../change-signal.ts';
import { isHeld } from '../run-transition.ts';

export interface HeldPermit {
  readonly run: string;
  readonly open: boolean;
  readonly deadlineMs: number;
  /** S18: what counts, and until when. */
  readonly spent: Amounts;
  readonly spentAtMs: number;
}

/**
 * All that the reference store knows, in order of arrival. Values are never changed in place, only replaced. It outlives one open store, so
 * that a test can close and reopen it.
 */
export class MemoryState {
  readonly users: User[] = [];
  readonly tokens = new Map<string, { readonly tenant: string; readonly user: string; readonly expiresAtMs: number }>();
  readonly threads: Thread[] = [];
  readonly messages: Message[] = [];
  /** By id, oldest first. */
  readonly runs = new Map<string, Run>();
  /** Length of each held run's current lease. */
  readonly leaseMs = new Map<string, number>();
  readonly attempts: Attempt[] = [];
  readonly calls: CallRow[] = [];
  readonly decisions: DecisionRow[] = [];
  readonly permits = new Map<string, HeldPermit>();
  checkpoints: (Checkpoint & { readonly sha256: string })[] = [];
  readonly events: KernelEvent[] = [];
  /** Threads of which nothing is left to remove; a message takes one out. */
  readonly pruned = new Set<string>();
  readonly approvals: Approval[] = [];
  /** Base64 by sha256. */
  readonly approvalFiles = new Map<string, string>();
  readonly deliveries: (DeliveryRow & { readonly sender: string | undefined })[] = [];
}

/** One open store over a state. */
export interface Memory {
  readonly state: MemoryState;
  readonly changes: ChangeSignal;
  readonly instance: string;
  newId(kind: IdKind, nowMs: number): string;
}

/** What a database does to a JSON value: an own copy, without what is undefined. */
export const copyOf = <T>(value: T): T => (value === undefined ? value : JSON.parse(JSON.stringify(value)));

/** Puts `next` in the place of `old`. */
export function replace<T>(list: T[], old: T, next: T): T {
  list[list.indexOf(old)] = next;
  return next;
}

export function append(memory: Memory, { type, tenant, thread, run, data }: NewEvent, nowMs: number): KernelEvent {
  const event: KernelEvent = {
    cursor: (memory.state.events.at(-1)?.cursor ?? 0) + 1,
    atMs: nowMs,
    type,
    ...(tenant === undefined ? {} : { tenant }),
    ...(thread === undefined ? {} : { thread }),
    ...(run === undefined ? {} : { run }),
    data: copyOf(data),
  };
  memory.state.events.push(event);
  memory.changes.advance(event.cursor);
  return event;
}

/** S2. @throws StoreError `stale_fence` (or `code`) */
export function requireHeld(state: MemoryState, ref: AttemptRef, code: 'stale_fence' | 'lease_lost' = 'stale_fence'): Run {
  const run = state.runs.get(ref.run);
  if (run === undefined || run.fence !== ref.fence || !isHeld(run.state)) {
    throw new StoreError(code, `Attempt ${ref.fence} does not hold run ${ref.run}`);
  }
  return run;
}
