import fc from 'fast-check';
import type { CallKey, EffectClass } from '../../core/capability/types.ts';
import type { Store } from '../../core/ports/store.ts';
import type { AttemptRef, RunState } from '../../core/run/types.ts';
import { callOf, event, RESULT } from '../store/scene.ts';
import { newAsk } from '../support/asked-approval.ts';

/** One step that is taken on the reference and on the store under test, with the same words. */
export interface Command {
  readonly name: string;
  readonly with: unknown;
  run(scene: Scene, store: Store): Promise<unknown>;
}

/** What the commands so far have named. Picks by number, so that a shrunk sequence still means something. */
export class Scene {
  nowMs = 1_000_000;
  readonly threads: string[] = [];
  readonly runs: string[] = [];
  readonly refs: AttemptRef[] = [];
  readonly permits: { readonly id: string; readonly ref: AttemptRef }[] = [];
  readonly calls: string[] = [];
  readonly deliveries: string[] = [];
  readonly approvals: { readonly id: string; readonly fingerprint: string; readonly key: CallKey; readonly ref: AttemptRef }[] = [];
  #serial = 0;
  #taken = 0;

  /** Called before each of the two takes of one command: both draw the same numbers. */
  begin(): void {
    this.#taken = 0;
  }

  /** An id that no earlier command used; the same in both takes. */
  fresh(kind: string): string {
    this.#taken += 1;
    return `${kind}-${this.#serial}-${this.#taken}`;
  }

  /** Recent ones more often: `n` counts from the newest. */
  pick<T>(from: readonly T[], n: number, none: T): T {
    return from.length === 0 ? none : (from[from.length - 1 - (n % from.length)] as T);
  }

  /** Learns from what the reference answered: new names come to the end, where they are picked most, spent ones go to the front. */
  observe(command: Command, outcome: { readonly value: unknown } | { readonly code: unknown }): void {
    this.#serial += 1;
    if (command.name === 'advance') this.nowMs += command.with as number;
    const value = ('value' in outcome ? outcome.value : undefined) as Record<string, unknown> | null | undefined;
    if (value == null) return;
    switch (command.name) {
      case 'post': {
        const { thread, run } = value as { thread: { id: string }; run: { id: string } };
        if (!this.threads.includes(thread.id)) this.threads.push(thread.id);
        this.runs.push(run.id);
        break;
      }
      case 'claim':
        this.refs.push({ run: value.id as string, fence: value.fence as number });
        break;
      case 'settle':
        spend(this.refs, ({ run }) => run === value.id);
        break;
      case 'expire':
        for (const { id } of value as unknown as { id: string }[]) spend(this.refs, ({ run }) => run === id);
        break;
      case 'open': {
        const { kind, row } = value as { kind: string; row: { id: string; run: string; fence: number; permit?: string } };
        if (!this.calls.includes(row.id)) this.calls.push(row.id);
        if (kind === 'parked') {
          const { approval } = value as { approval: { id: string; fingerprint: string; key: CallKey } };
          const known = this.approvals.some(({ id }) => id === approval.id);
          if (!known) this.approvals.push({ ...approval, ref: { run: row.run, fence: row.fence } });
        }
        if (kind === 'opened') this.permits.push({ id: row.permit as string, ref: { run: row.run, fence: row.fence } });
        break;
      }
      case 'close':
        spend(this.permits, ({ id }) => id === value.permit);
        break;
      case 'judge':
        for (const { id } of value as unknown as { id: string }[]) this.calls.push(id);
        break;
      case 'delivery.next':
        this.deliveries.push(value.id as string);
        break;
    }
  }
}

function spend<T>(list: T[], isSpent: (item: T) => boolean): void {
  const spent = list.filter(isSpent);
  const rest = list.filter((item) => !isSpent(item));
  list.splice(0, list.length, ...spent, ...rest);
}

const NOWHERE: AttemptRef = { run: 'run_none', fence: 1 };

const command = <W>(
  name: string,
  arbitrary: fc.Arbitrary<W>,
  run: (w: W, scene: Scene, store: Store) => Promise<unknown>,
): fc.Arbitrary<Command> => arbitrary.map((w) => ({ name, with: w, run: (scene, store) => run(w, scene, store) }));

/** Mostly the newest, sometimes an old (stale) or an unknown one. */
const index = fc.oneof(
  { weight: 5, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: 3 }) },
  { weight: 1, arbitrary: fc.nat() },
);
const key: fc.Arbitrary<CallKey> = fc.record({ step: fc.nat({ max: 2 }), call: fc.nat({ max: 1 }) });
const effectClass = fc.constantFrom<EffectClass>('pure', 'idempotent', 'once');
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

const open = command(
  'open',
  fc.record({
    at: index,
    key,
    effectClass,
    argsDigest: fc.constantFrom('a', 'a', 'a', 'b'),
    refuse: fc.nat({ max: 5 }),
    late: fc.nat({ max: 20 }),
  }),
  ({ at, key: of, effectClass: of2, argsDigest, refuse, late }, scene, store) => {
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
        ...(refuse === 0 ? { outcome: { kind: 'denied', reasons: [{ code: 'no', message: 'no' }] } } : {}),
      }),
    );
  },
);

/** Two fingerprints, so that equal asks and changed ones both come up. */
const fingerprint = fc.constantFrom('a'.repeat(64), 'a'.repeat(64), 'b'.repeat(64));

const ask = command(
  'open',
  fc.record({ at: index, key, effectClass, fingerprint }),
  ({ at, key: of, effectClass: of2, fingerprint: print }, scene, store) => {
    const ref = scene.pick(scene.refs, at, NOWHERE);
    const made = newAsk(scene.nowMs, {
      id: scene.fresh('apr'),
      fingerprint: print,
      expiresAtMs: scene.nowMs + 40_000,
      useWithinMs: 20_000,
    });
    const call = { key: of, effectClass: of2, argsDigest: 'a', decision: scene.fresh('dec'), nowMs: scene.nowMs, ask: made };
    return store.calls.open(ref, callOf(ref, call));
  },
);

const answer = command(
  'approval.answer',
  fc.record({ at: index, to: fc.constantFrom('approved', 'approved', 'denied') }),
  ({ at, to }, scene, store) => {
    const { id } = scene.pick(scene.approvals, at, { id: 'apr_none', fingerprint: '', key: { step: 0, call: 0 }, ref: NOWHERE });
    return store.approvals.answer({ approval: id, to, by: 'boss', decision: 'dec', nowMs: scene.nowMs });
  },
);

/** Hands a call over by an approval: mostly its own call, with what was approved, by the attempt that holds the run now. */
const use = command(
  'open',
  fc.record({ at: index, by: index, of: fc.option(key, { freq: 4 }), print: fc.option(fingerprint, { freq: 4 }) }),
  ({ at, by, of, print }, scene, store) => {
    const none = { id: 'apr_none', fingerprint: '', key: { step: 0, call: 0 }, ref: NOWHERE };
    const approval = scene.pick(scene.approvals, at, none);
    const own = scene.refs.findLast(({ run }) => run === approval.ref.run) ?? approval.ref;
    const ref = by === 0 ? own : scene.pick(scene.refs, by, NOWHERE);
    const wanted = { id: approval.id, fingerprint: print ?? approval.fingerprint };
    const call = { key: of ?? approval.key, argsDigest: 'a', permit: scene.fresh('prm'), decision: scene.fresh('dec'), nowMs: scene.nowMs };
    return store.calls.open(ref, callOf(ref, { ...call, approval: wanted, deadlineMs: scene.nowMs + 45_000 }));
  },
);

/** Ends the attempt as parked on an ask, which may have its answer already. */
const park = command('settle', fc.record({ at: index, on: index }), ({ at, on }, scene, store) => {
  const { id, ref: asker } = scene.pick(scene.approvals, on, { id: 'apr_none', ref: NOWHERE } as (typeof scene.approvals)[number]);
  const ref = at === 0 ? (scene.refs.findLast(({ run }) => run === asker.run) ?? asker) : scene.pick(scene.refs, at, NOWHERE);
  const gate = { kind: 'approval', ref: id, reason: 'a person' } as const;
  return store.runs.settle(ref, { to: 'parked', gate, outcome: 'parked', event: event('run.parked', ref.run), nowMs: scene.nowMs });
});

const lapse = command('approval.expire', fc.constant(null), (_, scene, store) => store.approvals.expire(scene.nowMs));

const close = command(
  'close',
  fc.record({
    at: index,
    by: fc.option(index, { freq: 2 }),
    state: fc.constantFrom('done', 'done', 'done', 'unknown'),
    effect: fc.constantFrom('none', 'message', 'message', 'checkpoint'),
  }),
  ({ at, by, state, effect }, scene, store) => {
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
      ...made,
    });
  },
);

const judge = command('judge', index, (at, scene, store) => store.calls.judge(scene.pick(scene.refs, at, NOWHERE), scene.nowMs));

const resolve = command('resolve', fc.record({ at: index, as: fc.constantFrom('done', 'not-done') }), ({ at, as }, scene, store) =>
  store.calls.resolve(scene.pick(scene.calls, at, 'cal_none'), as, event('call.resolved'), scene.nowMs),
);

const clear = command('checkpoints.clear', index, (at, scene, store) => store.checkpoints.clear(scene.pick(scene.runs, at, 'run_none')));

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
  [1, clear],
  [5, next],
  [2, finish],
  [1, sweep],
  [1, restart],
];

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

const anyOf = (from: readonly (readonly [number, fc.Arbitrary<Command>])[]): fc.Arbitrary<Command> =>
  fc.oneof(...from.map(([weight, arbitrary]) => ({ weight, arbitrary })));

/** A history begins with something to do. */
const beginning = (rest: fc.Arbitrary<Command>, ...first: readonly fc.Arbitrary<Command>[]): fc.Arbitrary<readonly Command[]> =>
  fc.tuple(fc.tuple(...first), fc.array(rest, { minLength: 30, maxLength: 90, size: 'max' })).map(([begun, more]) => [...begun, ...more]);

export const HISTORIES = beginning(anyOf(weighted), post, post, claim, open);

export const APPROVAL_HISTORIES = beginning(anyOf(ofApprovals), post, post, claim, ask, answer);
