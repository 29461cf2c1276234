import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { closePermit } from '../../core/capability/close-call.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import type { CallRequest } from '../../core/capability/types.ts';
import type { CallPolicyInput, Obligation } from '../../core/policy/types.ts';
import type { Broker } from '../../core/ports/broker.ts';
import { openCredentialGates } from '../../core/run/credential-gates.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { type CallWorld, callWorld, commandOutcome, decision, type WorldOptions } from '../support/call-world.ts';
import { TestBroker } from '../support/test-broker.ts';

const ADA = { tenant: 'default', user: 'ada' };
const SECRET = 'a-secret-of-ada-0123456789';
const LOWER: Obligation = { kind: 'effect_class', class: 'pure' };

const gh = (step = 0): CallRequest => ({ key: { step, call: 2 }, capability: 'shell.exec', args: { argv: ['gh', 'pr', 'list'] } });
const plain: CallRequest = { key: { step: 7, call: 2 }, capability: 'shell.exec', args: { argv: ['ls'] } };

async function world(options: WorldOptions & { held?: boolean } = {}) {
  const broker = new TestBroker({ gh: 'github' });
  if (options.held === true) broker.provide(ADA, 'github', SECRET);
  const made = await callWorld({
    ...options,
    broker: { credentialOf: broker.credentialOf.bind(broker), isMissing: broker.isMissing.bind(broker) },
  });
  return { ...made, broker };
}
const events = async ({ store, scope }: CallWorld) =>
  (await store.events.read(0, { run: scope.run }, 100)).map(({ type, data }) => ({ type, data }));
const inputs = ({ asked }: CallWorld) => asked.filter((input): input is CallPolicyInput => input.kind === 'call');

describe('credential presence in the call pipeline', () => {
  it('policy is told whether a call has its credential, and by which recipe', async () => {
    const made = await world({ held: true });
    await call(made.deps, made.scope, gh());
    await call(made.deps, made.scope, plain);
    made.broker.take(ADA, 'github');
    await call(made.deps, made.scope, gh(1));
    expect(inputs(made).map(({ credential, recipe }) => [credential, recipe])).toEqual([
      ['present', 'github'],
      ['none', ''],
      ['missing', 'github'],
    ]);
    expect(JSON.stringify(made.asked)).not.toContain(SECRET);
  });

  it.each(PLACEMENTS)('a missing credential parks before anybody is asked, and nothing is executed (%s)', async (placement) => {
    for (const effect of ['allow', 'ask'] as const) {
      const made = await world({ placement, decide: () => decision({ effect }) });
      const gate = { kind: 'credential', ref: 'github', reason: 'A credential is missing: github. outwork secret set github' };
      expect(await call(made.deps, made.scope, gh())).toEqual({ effect: 'parked', gate });
      expect(made.live.gate).toEqual(gate);
      expect(made.executed).toEqual([]);
      expect(await made.store.approvals.list({ limit: 9 })).toEqual([]);
      expect(await made.store.calls.list(made.scope.run)).toMatchObject([{ state: 'prepared', permit: undefined }]);
      expect((await events(made)).at(-1)).toMatchObject({
        type: 'credential.missing',
        data: { capability: 'shell.exec', recipe: 'github', hint: 'outwork secret set github', decision: expect.stringMatching(/^dec_/) },
      });
    }
  });

  it('a denied call tells nothing of credentials: reply, event and row are the same with one, and without', async () => {
    const seen = await Promise.all(
      [true, false].map(async (held) => {
        const made = await world({ held, decide: () => decision({ effect: 'deny', reasons: [{ code: 'no', message: 'no' }] }) });
        const reply = await call(made.deps, made.scope, gh());
        expect(made.live.gate).toBeUndefined();
        const [row] = await made.store.calls.list(made.scope.run);
        const told = (await events(made)).slice(-1).map(({ type, data }) => ({ type, data: { ...data, decision: '' } }));
        return { reply, outcome: row?.outcome, state: row?.state, told };
      }),
    );
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toMatchObject({ reply: { effect: 'denied' }, told: [{ type: 'call.denied' }] });
    expect(JSON.stringify(seen)).not.toContain('github');
  });

  it('with the credential there, the ask comes after it, and says by which recipe the call is credentialed', async () => {
    const made = await world({ held: true, decide: () => decision({ effect: 'ask' }) });
    expect(await call(made.deps, made.scope, gh())).toMatchObject({ effect: 'parked', gate: { kind: 'approval' } });
    const [ask] = await made.store.approvals.list({ limit: 9 });
    expect(ask?.ceiling.leases).toEqual([{ recipe: 'github', operations: [] }]);
    expect(ask?.shown.text).toContain('credentials github (whatever it allows)');
  });

  it('an approval of the call without its credential does not count for the call with it', async () => {
    const made = await world({ decide: () => decision({ effect: 'ask' }) });
    const uncredentialed = { credential: 'none', recipe: '' } as const;
    const deps = { ...made.deps, broker: { ...made.deps.broker, credentialOf: async () => uncredentialed } };
    await call(deps, made.scope, gh());
    const [ask] = await made.store.approvals.list({ limit: 9 });
    await made.store.approvals.answer({ approval: ask?.id ?? '', to: 'approved', by: 'boss', decision: 'd', nowMs: made.clock.now() });
    made.broker.provide(ADA, 'github', SECRET);
    expect(await call(made.deps, made.scope, gh())).toMatchObject({ effect: 'parked', gate: { kind: 'approval' } });
    expect(made.executed.filter((one) => 'argv' in (one as object))).toEqual([]);
    // Control: the call it was given for goes on.
    expect((await made.store.approvals.list({ limit: 9 })).map(({ state }) => state).sort()).toEqual(['pending', 'withdrawn']);
  });

  it('a credentialed call is never lowered from once, whatever policy says; without a credential it is', async () => {
    const made = await world({ held: true, placement: 'persistent-per-user', decide: () => decision({ obligations: [LOWER] }) });
    await call(made.deps, made.scope, gh());
    await call(made.deps, made.scope, plain);
    const classes = (await made.store.calls.list(made.scope.run)).map(({ effectClass }) => effectClass);
    expect(classes).toEqual(['once', 'pure']);
  });

  it('a result that is recorded is replayed, whether or not the credential is still there', async () => {
    const made = await world({ held: true, placement: 'persistent-per-user' });
    const reply = await call(made.deps, made.scope, gh());
    if (reply.effect !== 'permit') throw new Error(reply.effect);
    await closePermit(made.deps, made.scope, { permit: reply.permit.id, outcome: commandOutcome({ stdout: 'listed' }) });
    made.broker.take(ADA, 'github');
    expect(await call(made.deps, made.scope, gh())).toMatchObject({ effect: 'done', replayed: true, result: { stdout: 'listed' } });
  });

  it('a broker that fails stops the call, and none of its words reach the executor', async () => {
    const made = await world();
    const deps = { ...made.deps, broker: { ...made.deps.broker, credentialOf: () => Promise.reject(new Error(`vault: ${SECRET}`)) } };
    const thrown = await call(deps, made.scope, gh()).catch((error: unknown) => error as Error);
    expect(thrown).toMatchObject({ code: 'credential_unknown', message: expect.not.stringContaining(SECRET) });
    expect(made.executed).toEqual([]);
    expect(made.asked).toEqual([]);
  });

  it('a broker that never answers holds a call no longer than its attempt, and nothing that was reserved for it', async () => {
    const made = await world();
    const asked = Promise.withResolvers<void>();
    const credentialOf: Broker['credentialOf'] = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const reservations = new Reservations({ concurrentCalls: 1, callsPerRun: 50 });
    const calling = call({ ...made.deps, reservations, broker: { ...made.deps.broker, credentialOf } }, made.scope, gh());
    await asked.promise;
    expect(() => reservations.reserve(made.scope, { step: 9, call: 9 })).toThrow('concurrent_calls');
    made.live.cancel();
    await expect(calling).rejects.toMatchObject({ code: 'credential_unknown' });
    reservations.reserve(made.scope, { step: 9, call: 9 }).release();
    expect(await events(made)).not.toContainEqual(expect.objectContaining({ type: 'call.dispatched' }));
  });

  it('a secret in a hint is replaced like anywhere', async () => {
    const made = await world({ secrets: [SECRET] });
    const hinting = { credential: 'missing', recipe: 'github', hint: `not ${SECRET}` } as const;
    const deps = { ...made.deps, broker: { ...made.deps.broker, credentialOf: async () => hinting } };
    expect(await call(deps, made.scope, gh())).toMatchObject({ gate: { reason: expect.stringContaining('not [redacted]') } });
    expect(JSON.stringify(await events(made))).not.toContain(SECRET);
  });
});

const openGates = (
  { store, clock, deps }: CallWorld,
  broker: Broker = deps.broker,
  onError: (error: unknown, run: string | undefined) => void = (error) => expect.fail(String(error)),
) => openCredentialGates({ store, clock, broker, onError }, clock.now(), new AbortController().signal);

describe('the gate of a missing credential', () => {
  const parked = async () => {
    const made = await world();
    const reply = await call(made.deps, made.scope, gh());
    if (reply.effect !== 'parked') throw new Error(reply.effect);
    const { run, fence, tenant, thread } = made.scope;
    const event = { type: 'run.parked', tenant, thread, run, data: {} } as const;
    await made.store.runs.settle({ run, fence }, { to: 'parked', gate: reply.gate, event, outcome: 'parked', nowMs: made.clock.now() });
    return made;
  };
  const state = async (made: CallWorld) => (await made.store.runs.get(made.scope.run))?.state;

  it('stays shut while the credential is missing, also when another user has it', async () => {
    const made = await parked();
    made.broker.provide({ ...ADA, user: 'bo' }, 'github', SECRET);
    await openGates(made);
    expect(await state(made)).toBe('parked');
  });

  it('opens when the credential is there; the time it took is not the run’s', async () => {
    const made = await parked();
    const before = (await made.store.runs.get(made.scope.run))?.deadlineMs ?? 0;
    made.clock.advance(60_000);
    made.broker.provide(ADA, 'github', SECRET);
    await openGates(made);
    expect(await made.store.runs.get(made.scope.run)).toMatchObject({ state: 'queued', deadlineMs: before + 60_000 });
    expect((await events(made)).at(-1)).toEqual({ type: 'run.woken', data: { gate: 'credential', recipe: 'github' } });
  });

  it('opens when nobody knows the recipe any more, and leaves other gates alone', async () => {
    const made = await parked();
    await openGates(made, new TestBroker());
    expect(await state(made)).toBe('queued');
    const other = await callWorld({ decide: () => decision({ effect: 'ask' }) });
    const asked = await call(other.deps, other.scope, plain);
    if (asked.effect !== 'parked') throw new Error(asked.effect);
    const { run, fence } = other.scope;
    const event = { type: 'run.parked', run, data: {} } as const;
    await other.store.runs.settle({ run, fence }, { to: 'parked', gate: asked.gate, event, outcome: 'parked', nowMs: other.clock.now() });
    await openGates(other, new TestBroker());
    expect(await state(other)).toBe('parked');
  });

  it('stays shut while the broker fails or is silent; those behind it are opened all the same', async () => {
    for (const trouble of [() => Promise.reject(new Error('vault is down')), () => new Promise<boolean>(() => {})]) {
      const made = await parked();
      await made.store.users.add({ tenant: 'default', name: 'bo', roles: ['user'], nowMs: made.clock.now() });
      const behind = await parkedFor(made, 'bo');
      const errors: unknown[] = [];
      const isMissing: Broker['isMissing'] = ({ user }) => (user === 'ada' ? trouble() : Promise.resolve(false));
      const opening = openGates(made, { ...made.broker, isMissing } as Broker, (error, run) => errors.push([run, String(error)]));
      await setImmediate();
      made.clock.advance(5000);
      expect(await opening).toBe(1);
      expect(await state(made)).toBe('parked');
      expect((await made.store.runs.get(behind))?.state).toBe('queued');
      expect(errors).toEqual(errors.length === 0 ? [] : [[made.scope.run, 'Error: vault is down']]);
    }
  });
});

/** A run of another user that waits for the same credential. */
async function parkedFor({ store, clock }: CallWorld, actor: string): Promise<string> {
  const nowMs = clock.now();
  await store.threads.post({ tenant: 'default', actor, origin: 'operator', body: 'go', nowMs });
  const run = await store.runs.claim({ holder: 'here', nowMs, leaseMs: 30_000, deadlineMs: nowMs + 60_000, perUser: 1 });
  if (run === undefined) throw new Error('nothing to claim');
  const event = { type: 'run.parked', tenant: 'default', thread: run.thread, run: run.id, data: {} } as const;
  const gate = { kind: 'credential', ref: 'github', reason: 'missing' } as const;
  await store.runs.settle({ run: run.id, fence: run.fence }, { to: 'parked', gate, event, outcome: 'parked', nowMs });
  return run.id;
}
