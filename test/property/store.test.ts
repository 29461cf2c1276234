import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OpenCall, Store } from '../../core/ports/store.ts';
import type { AttemptRef, Run } from '../../core/run/types.ts';
import { addUser, visible } from '../store/scene.ts';
import { type MakeWorld, memoryWorld, type StoreWorld, sqliteWorld } from '../store/worlds.ts';
import { APPROVAL_HISTORIES, HISTORIES } from './store-commands.ts';
import { violations } from './store-invariants.ts';
import { type Command, Scene } from './store-scene.ts';

/** Equal ids for equal histories: counted per kind, so the two stores can be compared as they are. */
function countingIds(): (kind: string) => string {
  const counts = new Map<string, number>();
  return (kind) => {
    const next = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, next);
    return `${kind}_${next}`;
  };
}

async function peopled(make: MakeWorld): Promise<StoreWorld> {
  const world = await make({ newId: countingIds() });
  for (const name of ['ada', 'bob']) await addUser(world.store, name);
  await addUser(world.store, 'ada', 'other');
  return world;
}

type Outcome = { readonly value: unknown } | { readonly code: unknown };

/** What a method gave, or the code it refused with: an error without a code is a fault of the store. */
async function outcomeOf(command: Command, scene: Scene, store: Store): Promise<Outcome> {
  scene.begin();
  try {
    return { value: (await command.run(scene, store)) ?? null };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code !== undefined) return { code: error.code };
    throw error;
  }
}

interface Tally {
  succeeded: number;
  readonly refused: Map<unknown, number>;
}

/** Takes every command on both stores; throws at the first difference, at a refusal that changed something, at a broken invariant. */
async function compare(
  commands: readonly Command[],
  reference: StoreWorld,
  other: StoreWorld,
  weaken: Weakening,
  tally?: Tally,
): Promise<void> {
  const scene = new Scene();
  let stores = { reference: reference.store, other: weaken(other.store) };
  let before = await visible(stores.other);
  for (const command of commands) {
    const told = `${command.name} ${JSON.stringify(command.with)}`;
    if (command.name === 'restart') stores = { reference: await reference.reopen(), other: weaken(await other.reopen()) };
    const wanted = await outcomeOf(command, scene, stores.reference);
    expect(await outcomeOf(command, scene, stores.other), told).toEqual(wanted);
    const after = await visible(stores.other);
    expect(after, told).toEqual(await visible(stores.reference));
    // What is removed is compared with the reference; the other commands remove nothing.
    if (command.name !== 'prune') expect(violations(before, after), told).toEqual([]);
    if ('code' in wanted) expect(after, `${told} was refused`).toEqual(before);
    else if (command.name === 'claim' && wanted.value !== null) await requireRoom(stores.other, wanted.value as Run, command);
    if (tally !== undefined) count(tally, wanted);
    scene.observe(command, wanted);
    before = after;
  }
}

function count(tally: Tally, outcome: Outcome): void {
  if ('code' in outcome) tally.refused.set(outcome.code, (tally.refused.get(outcome.code) ?? 0) + 1);
  else tally.succeeded += 1;
}

async function requireRoom(store: Store, claimed: Run, command: Command): Promise<void> {
  const active = await store.runs.list({ tenant: claimed.tenant, states: ['running', 'cancelling'], limit: 1000 });
  const mine = active.filter(({ actor }) => actor === claimed.actor).length;
  expect(mine, 'active runs of one user').toBeLessThanOrEqual((command.with as { perUser: number }).perUser);
}

function property(make: MakeWorld, weaken: Weakening, tally?: Tally, histories = HISTORIES) {
  return fc.asyncProperty(histories, async (commands) => {
    const reference = await peopled(memoryWorld);
    const other = await peopled(make);
    try {
      await compare(commands, reference, other, weaken, tally);
    } finally {
      await reference.dispose();
      await other.dispose();
    }
  });
}

test('the durable store does what the reference does, result by result and row by row (S1–S19)', async () => {
  const tally: Tally = { succeeded: 0, refused: new Map() };
  await fc.assert(
    property(sqliteWorld, (store) => store, tally),
    { numRuns: 30 },
  );
  // The commands do reach what they are about: without this a scene that refuses everything would pass.
  expect(tally.succeeded).toBeGreaterThan(500);
  for (const code of ['stale_fence', 'lease_lost', 'illegal_transition', 'not_found', 'conflict', 'permit_expired']) {
    expect(tally.refused.get(code) ?? 0, code).toBeGreaterThan(0);
  }
}, 300_000);

test('the life of an ask on the durable store is that of the reference (S12–S17)', async () => {
  const tally: Tally = { succeeded: 0, refused: new Map() };
  await fc.assert(
    property(sqliteWorld, (store) => store, tally, APPROVAL_HISTORIES),
    { numRuns: 40 },
  );
  expect(tally.succeeded).toBeGreaterThan(500);
  for (const code of ['approval_unusable', 'approval_expired', 'conflict', 'stale_fence']) {
    expect(tally.refused.get(code) ?? 0, code).toBeGreaterThan(0);
  }
}, 300_000);

type Weakening = (store: Store) => Store;

/** Gives every write the fence that is current, whatever fence it came with. */
const unfenced: Weakening = (store) => {
  const now = async (ref: AttemptRef) => ({ run: ref.run, fence: (await store.runs.get(ref.run))?.fence ?? ref.fence });
  return {
    ...store,
    runs: { ...store.runs, settle: async (ref, change) => store.runs.settle(await now(ref), change) },
    calls: { ...store.calls, open: async (ref, call) => store.calls.open(await now(ref), call) },
  };
};

const KEPT = { decisions: 0, calls: 0, permits: 0, approvals: 0, files: 0, deliveries: 0, events: 0 };

/** Each takes one guard away from an otherwise right store. */
const WEAKENINGS: Readonly<Record<string, Weakening>> = {
  'S1 the bound per user is not kept': (store) => ({
    ...store,
    runs: { ...store.runs, claim: (claim) => store.runs.claim({ ...claim, perUser: 99 }) },
  }),
  'S2 the fence is not checked': unfenced,
  'S4 the reclaim budget is not kept': (store) => ({ ...store, runs: { ...store.runs, expire: (nowMs) => store.runs.expire(nowMs, 99) } }),
  'S6 the deadline of a permit is not checked': (store) => ({
    ...store,
    calls: { ...store.calls, close: (ref, close) => store.calls.close(ref, { ...close, nowMs: 0 }) },
  }),
  'S7 once calls are judged as if they could run again': (store) => ({
    ...store,
    calls: { ...store.calls, open: (ref, call) => store.calls.open(ref, { ...call, effectClass: 'idempotent' }) },
  }),
  'S18 an end gives back nothing of what was reserved': (store) => ({
    ...store,
    calls: { ...store.calls, close: (ref, { spent: _, ...close }) => store.calls.close(ref, close) },
  }),
  'S19 what is over is kept': (store) => ({ ...store, retention: { prune: async () => ({ counts: KEPT, next: undefined }) } }),
  'S11 a sweep puts nothing aside': (store) => ({ ...store, deliveries: { ...store.deliveries, sweep: async () => [] } }),
};

const opening = (store: Store, change: (call: OpenCall) => Promise<OpenCall> | OpenCall): Store => ({
  ...store,
  calls: { ...store.calls, open: async (ref, call) => store.calls.open(ref, await change(call)) },
});

const APPROVAL_WEAKENINGS: Readonly<Record<string, Weakening>> = {
  'S12 every ask is a new one': (store) =>
    opening(store, (call) => (call.ask === undefined ? call : { ...call, ask: { ...call.ask, fingerprint: call.ask.id } })),
  'S13 the time to answer is not kept': (store) => ({
    ...store,
    approvals: { ...store.approvals, answer: (answer) => store.approvals.answer({ ...answer, nowMs: 0 }) },
  }),
  'S14 the fingerprint is not compared': (store) =>
    opening(store, async (call) => {
      const known = call.approval && (await store.approvals.get(call.approval.id));
      return known === undefined ? call : { ...call, approval: { id: known.id, fingerprint: known.fingerprint } };
    }),
  'S14 a call is handed over without its approval being used up': (store) => opening(store, ({ approval: _, ...call }) => call),
  'S15 nothing expires': (store) => ({ ...store, approvals: { ...store.approvals, expire: async () => [] } }),
};

describe('control: a store without one of its guards on asks is told apart', () => {
  for (const [name, weaken] of Object.entries(APPROVAL_WEAKENINGS)) {
    test(name, async () => {
      const { failed } = await fc.check(property(memoryWorld, weaken, undefined, APPROVAL_HISTORIES), { numRuns: 400, endOnFailure: true });
      expect(failed).toBe(true);
    }, 120_000);
  }
});

describe('control: a store without one of its guards is told apart', () => {
  for (const [name, weaken] of Object.entries(WEAKENINGS)) {
    test(name, async () => {
      const { failed } = await fc.check(property(memoryWorld, weaken), { numRuns: 400, endOnFailure: true });
      expect(failed).toBe(true);
    }, 120_000);
  }
});
