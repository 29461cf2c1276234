import { randomUUID } from 'node:crypto';
import type { Approval, NewApproval } from '../../core/approval/types.ts';
import type { Amounts } from '../../core/capability/ceilings.ts';
import type { CallKey, CapabilityName, EffectClass } from '../../core/capability/types.ts';
import type { EventType, NewEvent } from '../../core/events.ts';
import type { Decision } from '../../core/policy/types.ts';
import type { OpenCall, OpenResult, PostedMessage, RecordedOutcome, Store, StoreEffect } from '../../core/ports/store.ts';
import type { AttemptRef, ClaimedRun, Gate } from '../../core/run/types.ts';
import { newAsk } from '../support/asked-approval.ts';

/** What tests of a store say over and over, with everything that does not matter filled in. Time is the test's own number. */

export const T0 = 1_000_000;
export const LEASE_MS = 30_000;

export const ALLOW: Decision = {
  effect: 'allow',
  reasons: [],
  obligations: [{ kind: 'audit' }],
  digests: { rules: 'r1', data: 'd1' },
  durationUs: 12.5,
};

export const event = (type: EventType, run?: string): NewEvent => ({
  type,
  tenant: 'acme',
  ...(run === undefined ? {} : { run }),
  data: { by: 'test' },
});

export const RESULT: RecordedOutcome = { kind: 'result', result: { exitCode: 0, stdout: 'ok' }, source: 'kernel' };

export async function addUser(store: Store, name: string, tenant = 'acme'): Promise<void> {
  await store.users.add({ tenant, name, roles: ['user'], nowMs: T0 });
}

export async function post(
  store: Store,
  at: { thread?: string; actor?: string; body?: string; nowMs?: number } = {},
): Promise<PostedMessage> {
  const { thread, actor = 'ada', body = 'hello', nowMs = T0 } = at;
  return store.threads.post({ tenant: 'acme', actor, origin: 'interactive', body, nowMs, ...(thread === undefined ? {} : { thread }) });
}

export async function claim(
  store: Store,
  at: { holder?: string; nowMs?: number; leaseMs?: number; perUser?: number } = {},
): Promise<ClaimedRun | undefined> {
  const { holder = 'kernel-1', nowMs = T0, leaseMs = LEASE_MS, perUser = 1 } = at;
  return store.runs.claim({ holder, nowMs, leaseMs, perUser, deadlineMs: nowMs + 1_800_000 });
}

/** A user, a thread, a message and its claimed run. */
export async function claimedRun(store: Store): Promise<ClaimedRun> {
  await addUser(store, 'ada');
  await post(store);
  return mustClaim(store);
}

export async function mustClaim(store: Store, at: Parameters<typeof claim>[1] = {}): Promise<ClaimedRun> {
  const run = await claim(store, at);
  if (run === undefined) throw new Error('nothing to claim');
  return run;
}

export const refOf = (run: { readonly id: string; readonly fence: number }): AttemptRef => ({ run: run.id, fence: run.fence });

export interface CallAt {
  readonly key?: CallKey;
  readonly capability?: CapabilityName;
  readonly effectClass?: EffectClass;
  readonly argsDigest?: string;
  readonly permit?: string;
  readonly decision?: string;
  readonly deadlineMs?: number;
  readonly outcome?: RecordedOutcome;
  readonly ask?: NewApproval;
  readonly gate?: Gate;
  readonly approval?: OpenCall['approval'];
  readonly reserved?: Amounts;
  readonly nowMs?: number;
}

/** Ids of permits and decisions are the caller's. */
export const fresh = (kind: string): string => `${kind}_${randomUUID()}`;

export function callOf(ref: AttemptRef, at: CallAt = {}): OpenCall {
  const {
    key = { step: 0, call: 0 },
    capability = 'shell.exec',
    effectClass = 'once',
    argsDigest = 'args-1',
    nowMs = T0,
    outcome,
    ask,
    gate,
    approval,
  } = at;
  return {
    key,
    capability,
    effectClass,
    argsDigest,
    summary: 'git push',
    decision: { id: at.decision ?? fresh('dec'), inputDigest: 'in-1', decision: ALLOW },
    ...(ask !== undefined
      ? { ask }
      : gate !== undefined
        ? { gate }
        : outcome !== undefined
          ? { outcome }
          : { permit: { id: at.permit ?? fresh('prm'), deadlineMs: at.deadlineMs ?? nowMs + 60_000 } }),
    ...(approval === undefined ? {} : { approval }),
    ...(at.reserved === undefined ? {} : { reserved: at.reserved }),
    event: event(
      ask !== undefined
        ? 'approval.requested'
        : gate !== undefined
          ? 'credential.missing'
          : outcome === undefined
            ? 'call.dispatched'
            : 'call.denied',
      ref.run,
    ),
    nowMs,
  };
}

export const open = (store: Store, ref: AttemptRef, at: CallAt = {}): Promise<OpenResult> => store.calls.open(ref, callOf(ref, at));

export function close(
  store: Store,
  ref: AttemptRef,
  permit: string,
  at: { state?: 'done' | 'unknown'; effect?: StoreEffect; outcome?: RecordedOutcome; spent?: Amounts; nowMs?: number } = {},
) {
  const { state = 'done', effect, outcome = RESULT, spent, nowMs = T0 } = at;
  return store.calls.close(ref, {
    permit,
    outcome,
    state,
    ...(effect === undefined ? {} : { effect }),
    ...(spent === undefined ? {} : { spent }),
    event: event(state === 'done' ? 'call.completed' : 'call.unknown', ref.run),
    nowMs,
  });
}

/** Opens and closes one call that leaves `effect`. */
export async function callWith(store: Store, ref: AttemptRef, key: CallKey, effect: StoreEffect): Promise<void> {
  const permit = fresh('prm');
  await open(store, ref, {
    key,
    permit,
    capability: effect.kind === 'message' ? 'message.post' : 'checkpoint.save',
    effectClass: 'idempotent',
  });
  await close(store, ref, permit, { effect });
}

export const saveCheckpoint = (store: Store, ref: AttemptRef, step: number, body: string): Promise<void> =>
  callWith(store, ref, { step, call: 0 }, { kind: 'checkpoint', schema: 'native', version: 1, body });

export const reply = (store: Store, ref: AttemptRef, step: number, body: string): Promise<void> =>
  callWith(store, ref, { step, call: 0 }, { kind: 'message', body });

export const settle = (store: Store, ref: AttemptRef, to: 'completed' | 'failed' | 'parked' | 'queued' | 'cancelled', nowMs = T0) =>
  store.runs.settle(ref, {
    to,
    outcome: 'exited',
    event: event(to === 'queued' ? 'run.reclaimed' : `run.${to}`, ref.run),
    nowMs,
    ...(to === 'parked' ? { gate: { kind: 'unknown', ref: 'cal_x', reason: 'not known' } } : {}),
    ...(to === 'failed' ? { failure: 'some_code' } : {}),
    ...(to === 'queued' ? { reclaim: true } : {}),
  });

/** Opens the call as one that waits for a person. */
export async function ask(store: Store, ref: AttemptRef, at: CallAt & { readonly change?: Partial<NewApproval> } = {}): Promise<Approval> {
  const opened = await open(store, ref, { ...at, ask: newAsk(at.nowMs ?? T0, at.change) });
  if (opened.kind !== 'parked') throw new Error(`not parked: ${opened.kind}`);
  return opened.approval;
}

export const answer = (store: Store, approval: string, to: 'approved' | 'denied', nowMs = T0): Promise<Approval> =>
  store.approvals.answer({ approval, to, by: 'boss', decision: 'dec-answer', nowMs });

/** Ends the attempt as parked on an ask. */
export const park = (store: Store, ref: AttemptRef, approval: string, nowMs = T0) =>
  store.runs.settle(ref, {
    to: 'parked',
    gate: { kind: 'approval', ref: approval, reason: 'a person' },
    outcome: 'parked',
    event: event('run.parked', ref.run),
    nowMs,
  });

/** What is spent since then, added up by tenant, actor, thread and dimension. */
export async function spentOf(store: Store, sinceMs: number): Promise<Readonly<Record<string, number>>> {
  const sums: Record<string, number> = {};
  for (const { tenant, user, thread, amounts } of await store.calls.spent(sinceMs)) {
    for (const [dimension, amount] of Object.entries(amounts)) {
      const name = [tenant, user, thread, dimension].join(' ');
      sums[name] = (sums[name] ?? 0) + amount;
    }
  }
  return sums;
}

/** All that can be seen of a store from outside, for "nothing was changed". */
export async function visible(store: Store): Promise<unknown> {
  const users = await store.users.list();
  const tenants = [...new Set(users.map((user) => user.tenant))];
  const threads = (await Promise.all(tenants.map((tenant) => store.threads.list(tenant, 1000)))).flat();
  const runs = await store.runs.list({ limit: 1000 });
  return {
    users,
    threads: await Promise.all(
      threads.map(async (thread) => ({ thread, messages: await store.threads.messages(thread.id, { limit: 1000 }) })),
    ),
    runs: await Promise.all(
      runs.map(async (run) => ({
        run,
        attempts: await store.runs.attempts(run.id),
        calls: await store.calls.list(run.id),
        decisions: await store.calls.decisions(run.id),
        checkpoint: await store.checkpoints.latest(run.id).catch((error: { code: string }) => error.code),
      })),
    ),
    approvals: await store.approvals.list({ limit: 1000 }),
    spent: await spentOf(store, 0),
    deliveries: await store.deliveries.list({ limit: 1000 }),
    events: await store.events.read(0, {}, 10_000),
  };
}
