import fc from 'fast-check';
import { callOf, event } from '../store/scene.ts';
import { newAsk } from '../support/asked-approval.ts';
import { command, effectClass, index, key, NOWHERE } from './store-scene.ts';

/** Two fingerprints, so that equal asks and changed ones both come up. */
const fingerprint = fc.constantFrom('a'.repeat(64), 'a'.repeat(64), 'b'.repeat(64));

export const ask = command(
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

export const answer = command(
  'approval.answer',
  fc.record({ at: index, to: fc.constantFrom('approved', 'approved', 'denied') }),
  ({ at, to }, scene, store) => {
    const { id } = scene.pick(scene.approvals, at, { id: 'apr_none', fingerprint: '', key: { step: 0, call: 0 }, ref: NOWHERE });
    return store.approvals.answer({ approval: id, to, by: 'boss', decision: 'dec', nowMs: scene.nowMs });
  },
);

/** Hands a call over by an approval: mostly its own call, with what was approved, by the attempt that holds the run now. */
export const use = command(
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
export const park = command('settle', fc.record({ at: index, on: index }), ({ at, on }, scene, store) => {
  const { id, ref: asker } = scene.pick(scene.approvals, on, { id: 'apr_none', ref: NOWHERE } as (typeof scene.approvals)[number]);
  const ref = at === 0 ? (scene.refs.findLast(({ run }) => run === asker.run) ?? asker) : scene.pick(scene.refs, at, NOWHERE);
  const gate = { kind: 'approval', ref: id, reason: 'a person' } as const;
  return store.runs.settle(ref, { to: 'parked', gate, outcome: 'parked', event: event('run.parked', ref.run), nowMs: scene.nowMs });
});

export const lapse = command('approval.expire', fc.constant(null), (_, scene, store) => store.approvals.expire(scene.nowMs));
