import fc from 'fast-check';
import type { RunState } from '../../core/run/types.ts';
import { callOf, event, RESULT } from '../store/scene.ts';
import { answer, ask, lapse, park, use } from './approval-commands.ts';
import { type Command, command, effectClass, index, key, NOWHERE } from './store-scene.ts';

const settled = fc.constantFrom<Exclude<RunState, 'running'>>('queued', 'parked', 'completed', 'failed', 'cancelled', 'cancelling');

const post = command(
  'post',
  fc.record({
    actor: fc.constantFrom('ada', 'bob', 'ada', 'bob', 'ada', 'bob', 'eve'),
    tenant: fc.constantFrom('acme', 'acme', 'acme', 'acme', 'acme', 'other'),
    thread: fc.option(fc.nat({ max: 3 }), { freq: 1 }),
  }),
  ({ actor, tenant, thread }, scene, store) =>
    store.threads.post({
      tenant,
      actor,
      origin: 'interactive',
      body: 'hello',
      nowMs: scene.nowMs,
      ...(thread === null || (thread > 0 && scene.threads.length === 0) ? {} : { thread: scene.pick(scene.threads, thread, 'thr_none') }),
    }),
);

const steer = command('steer', fc.record({ run: index, actor: fc.constantFrom('ada', 'bob') }), ({ run, actor }, scene, store) =>
  store.threads.steer({ tenant: 'acme', run: scene.pick(scene.runs, run, 'run_none'), actor, body: 'more', nowMs: scene.nowMs }),
);

const claim = command(
  'claim',
  fc.record({ perUser: fc.constantFrom(1, 1, 2, 3), holder: fc.constantFrom('k1', 'k2') }),
  ({ perUser, holder }, scene, store) =>
    store.runs.claim({ holder, perUser, nowMs: scene.nowMs, leaseMs: 30_000, deadlineMs: scene.nowMs + 1_800_000 }),
);

const heartbeat = command('heartbeat', index, (at, scene, store) =>
  store.runs.heartbeat(scene.pick(scene.refs, at, NOWHERE), scene.nowMs, 30_000),
);

const seat = command('seat', index, (at, scene, store) => {
  const ref = scene.pick(scene.refs, at, NOWHERE);
  return store.runs.seat(ref, {
    placement: 'disposable-per-run',
    engine: 'bubblewrap',
    event: event('run.placed', ref.run),
    nowMs: scene.nowMs,
  });
});

const settle = command('settle', fc.record({ at: index, to: settled, reclaim: fc.boolean() }), ({ at, to, reclaim }, scene, store) => {
  const ref = scene.pick(scene.refs, at, NOWHERE);
  const gate = { kind: 'unknown', ref: 'cal_1', reason: 'not known' } as const;
  return store.runs.settle(ref, {
    to,
    gate,
    failure: 'code',
    reclaim,
    outcome: 'exited',
    event: event('run.progress', ref.run),
    nowMs: scene.nowMs,
  });
});

const states = fc.uniqueArray(fc.constantFrom<RunState>('queued', 'parked', 'running', 'cancelling', 'completed'), { minLength: 1 });
const move = command('move', fc.record({ at: index, to: settled, from: states }), ({ at, to, from }, scene, store) => {
  const run = scene.pick(scene.runs, at, 'run_none');
  return store.runs.move(run, { to, from, failure: 'code', event: event('run.woken', run), nowMs: scene.nowMs });
});

/** Wakes what is parked, so that histories go on after a gate. */
const wake = command('wake', index, (at, scene, store) => {
  const { run } = scene.pick(scene.refs, at, NOWHERE);
  return store.runs.move(run, { to: 'queued', from: ['parked'], event: event('run.woken', run), nowMs: scene.nowMs });
});

const cancel = command('requestCancel', index, (at, scene, store) => {
  const run = scene.pick(scene.runs, at, 'run_none');
  return store.runs.requestCancel(run, event('run.cancelling', run), scene.nowMs);
});

const expire = command('expire', fc.nat({ max: 2 }), (budget, scene, store) => store.runs.expire(scene.nowMs, budget));

const advance = command('advance', fc.constantFrom(1, 1000, 29_999, 30_000, 31_000, -5000, -600_000), async () => undefined);

const amounts = fc.record({ wallMs: fc.nat(99), tokens: fc.nat(99) }, { requiredKeys: [] });

const open = command(
  'open',
  fc.record({
    at: index,
    key,
    effectClass,
    argsDigest: fc.constantFrom('a', 'a', 'a', 'b'),
    refuse: fc.nat({ max: 5 }),
    waits: fc.nat({ max: 5 }),
    late: fc.nat({ max: 20 }),
    reserved: amounts,
  }),
  ({ at, key: of, effectClass: of2, argsDigest, refuse, waits, late, reserved }, scene, store) => {
    const ref = scene.pick(scene.refs, at, NOWHERE);
    return store.calls.open(
      ref,
      callOf(ref, {
        key: of,
        effectClass: of2,
        argsDigest,
        permit: scene.fresh('prm'),
        decision: scene.fresh('dec'),
        nowMs: scene.nowMs,
        deadlineMs: scene.nowMs + (late === 0 ? -1 : 45_000),
        reserved,
        ...(waits === 0 ? { gate: { kind: 'credential', ref: 'github', reason: 'missing' } } : {}),
        ...(refuse === 0 ? { outcome: { kind: 'denied', reasons: [{ code: 'no', message: 'no' }] } } : {}),
      }),
    );
  },
);

const close = command(
  'close',
  fc.record({
    at: index,
    by: fc.option(index, { freq: 2 }),
    state: fc.constantFrom('done', 'done', 'done', 'unknown'),
    effect: fc.constantFrom('none', 'message', 'message', 'checkpoint'),
    spent: fc.option(amounts, { nil: undefined }),
  }),
  ({ at, by, state, effect, spent }, scene, store) => {
    const permit = scene.pick(scene.permits, at, { id: 'prm_none', ref: NOWHERE });
    const ref = by === null ? permit.ref : scene.pick(scene.refs, by, NOWHERE);
    const made =
      state !== 'done' || effect === 'none'
        ? {}
        : effect === 'message'
          ? { effect: { kind: 'message', body: 'reply' } as const }
          : { effect: { kind: 'checkpoint', schema: 's', version: 1, body: `at ${permit.id}` } as const };
    return store.calls.close(ref, {
      permit: permit.id,
      state,
      outcome: RESULT,
      event: event('call.completed', ref.run),
      nowMs: scene.nowMs,
      ...(spent === undefined ? {} : { spent }),
      ...made,
    });
  },
);

const judge = command('judge', index, (at, scene, store) => store.calls.judge(scene.pick(scene.refs, at, NOWHERE), scene.nowMs));

const resolve = command('resolve', fc.record({ at: index, as: fc.constantFrom('done', 'not-done') }), ({ at, as }, scene, store) =>
  store.calls.resolve(scene.pick(scene.calls, at, 'cal_none'), as, event('call.resolved'), scene.nowMs),
);

const next = command('delivery.next', fc.constant(null), (_, scene, store) => store.deliveries.next(scene.nowMs));

const finish = command(
  'delivery.finish',
  fc.record({ at: index, to: fc.constantFrom('delivered', 'prepared', 'unknown') }),
  ({ at, to }, scene, store) =>
    store.deliveries.finish(scene.pick(scene.deliveries, at, 'dlv_none'), to, event('delivery.sent'), scene.nowMs),
);

const sweep = command('delivery.sweep', fc.constant(null), (_, scene, store) => store.deliveries.sweep(scene.nowMs));

/** A kernel restarts: the test closes and opens both stores, then the new kernel sweeps as every kernel does first. */
const restart = command('restart', fc.constant(null), (_, scene, store) => store.deliveries.sweep(scene.nowMs));

/** What lies behind by one of these is over; one call removes all of it. */
const prune = command(
  'prune',
  fc.record({ decisions: fc.constantFrom(0, 1000, 40_000), threads: fc.constantFrom(0, 1000, 40_000) }),
  (age, scene, store) =>
    store.retention.prune({ decisionsBeforeMs: scene.nowMs - age.decisions, threadsBeforeMs: scene.nowMs - age.threads }, 10_000),
);

const weighted: readonly (readonly [number, fc.Arbitrary<Command>])[] = [
  [5, post],
  [1, steer],
  [8, claim],
  [2, heartbeat],
  [1, seat],
  [4, settle],
  [2, move],
  [2, wake],
  [1, cancel],
  [3, expire],
  [3, advance],
  [9, open],
  [6, ask],
  [6, answer],
  [6, use],
  [3, park],
  [2, lapse],
  [9, close],
  [3, judge],
  [3, resolve],
  [5, next],
  [2, finish],
  [1, sweep],
  [2, prune],
  [1, restart],
];

const anyOf = (from: readonly (readonly [number, fc.Arbitrary<Command>])[]): fc.Arbitrary<Command> =>
  fc.oneof(...from.map(([weight, arbitrary]) => ({ weight, arbitrary })));

/** What the life of an ask is made of, and what comes in between. */
const ofApprovals: readonly (readonly [number, fc.Arbitrary<Command>])[] = [
  [2, post],
  [5, claim],
  [8, ask],
  [8, answer],
  [8, use],
  [5, park],
  [2, lapse],
  [2, open],
  [2, close],
  [1, settle],
  [1, cancel],
  [1, judge],
  [2, resolve],
  [2, expire],
  [4, command('advance', fc.constantFrom(1, 5000, 19_999, 21_000, 40_001, -5000), async () => undefined)],
  [1, restart],
];

/** A history begins with something to do. */
const beginning = (rest: fc.Arbitrary<Command>, ...first: readonly fc.Arbitrary<Command>[]): fc.Arbitrary<readonly Command[]> =>
  fc.tuple(fc.tuple(...first), fc.array(rest, { minLength: 30, maxLength: 90, size: 'max' })).map(([begun, more]) => [...begun, ...more]);

export const HISTORIES = beginning(anyOf(weighted), post, post, claim, open);

export const APPROVAL_HISTORIES = beginning(anyOf(ofApprovals), post, post, claim, ask, answer);
