import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { type AccountScope, type Amounts, CeilingAccounts } from '../../core/capability/ceilings.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import { CEILINGS, type Ceilings, DIMENSIONS, type Dimension, isMetered } from '../../core/limits.ts';
import { callWorld, commandOutcome, ManualClock } from '../support/call-world.ts';

const WINDOW_MS = 60_000;
const ada: AccountScope = { tenant: 'acme', user: 'ada', thread: 't1' };
const adaElsewhere: AccountScope = { ...ada, thread: 't2' };
const bo: AccountScope = { tenant: 'acme', user: 'bo', thread: 't3' };

const accounts = (ceilings: Partial<Ceilings>, clock = new ManualClock()) =>
  new CeilingAccounts({ windowMs: WINDOW_MS, tenant: {}, user: {}, thread: {}, ...ceilings }, clock);

const one = (dimension: Dimension, amount = 1): Amounts => ({ [dimension]: amount });

describe.each(DIMENSIONS)('a ceiling on %s', (dimension) => {
  it('is reserved before anything happens, and what is refused names account and dimension', () => {
    const ceilings = accounts({ user: { [dimension]: 2 } });
    ceilings.reserve(ada, one(dimension, 2));
    expect(() => ceilings.reserve(ada, one(dimension))).toThrow(
      expect.objectContaining({ code: 'budget_exhausted', message: `user ada has used up ${dimension} (2)` }),
    );
  });

  it('a user who was never seen has it too, and a sibling is not affected', () => {
    const ceilings = accounts({ user: { [dimension]: 1 } });
    ceilings.reserve(ada, one(dimension));
    expect(() => ceilings.reserve(adaElsewhere, one(dimension))).toThrow('user ada');
    ceilings.reserve(bo, one(dimension));
    expect(() => ceilings.reserve({ tenant: 'acme', user: 'never-seen', thread: 'x' }, one(dimension, 2))).toThrow('user never-seen');
    // The same name in another tenant is another user.
    ceilings.reserve({ ...ada, tenant: 'other' }, one(dimension));
  });

  it('cascades from tenant to user to thread; what one refuses is held by none', () => {
    const ceilings = accounts({ tenant: { [dimension]: 3 }, user: { [dimension]: 2 }, thread: { [dimension]: 1 } });
    ceilings.reserve(ada, one(dimension));
    expect(() => ceilings.reserve(ada, one(dimension))).toThrow(`thread t1 has used up ${dimension} (1)`);
    ceilings.reserve(adaElsewhere, one(dimension));
    expect(() => ceilings.reserve({ ...ada, thread: 't9' }, one(dimension))).toThrow(`user ada has used up ${dimension} (2)`);
    ceilings.reserve(bo, one(dimension));
    expect(() => ceilings.reserve({ ...bo, thread: 't4' }, one(dimension))).toThrow(`tenant acme has used up ${dimension} (3)`);
  });

  it('gives back what was reserved and not used, once', () => {
    const ceilings = accounts({ user: { [dimension]: 1 } });
    const hold = ceilings.reserve(ada, one(dimension));
    hold.release();
    hold.release();
    ceilings.reserve(ada, one(dimension));
    expect(() => ceilings.reserve(ada, one(dimension))).toThrow('ada');
  });

  it(isMetered(dimension) ? 'counts what was used until its window ends' : 'is free again when the call has ended', () => {
    const clock = new ManualClock();
    const ceilings = accounts({ user: { [dimension]: 10 } }, clock);
    ceilings.reserve(ada, one(dimension, 10)).settle(one(dimension, 4));
    if (isMetered(dimension)) {
      expect(() => ceilings.reserve(ada, one(dimension, 7))).toThrow('ada');
      ceilings.reserve(ada, one(dimension, 6)).release();
      clock.advance(WINDOW_MS);
    }
    ceilings.reserve(ada, one(dimension, 10));
  });
});

describe('accounts', () => {
  it('a ceiling of zero admits nothing, and none admits all', () => {
    expect(() => accounts({ user: { tokens: 0 } }).reserve(ada, { tokens: 1 })).toThrow('tokens (0)');
    accounts({}).reserve(ada, { tokens: Number.MAX_SAFE_INTEGER });
  });

  it('what arrives without a reservation is booked, and says when it is too much', () => {
    const ceilings = accounts({ user: { egressBytes: 100 } });
    ceilings.charge(ada, { egressBytes: 60 });
    expect(() => ceilings.charge(ada, { egressBytes: 60 })).toThrow('user ada has used up egressBytes (100)');
    expect(() => ceilings.reserve(ada, { egressBytes: 0 })).toThrow('egressBytes');
  });

  it('never holds more than a ceiling, whatever is reserved and given back', () => {
    const step = fc.record({ user: fc.constantFrom(ada, adaElsewhere, bo), amount: fc.integer({ min: 1, max: 6 }), end: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const limit = { tenant: 12, user: 8, thread: 5 };
        const ceilings = accounts({
          tenant: { processes: limit.tenant },
          user: { processes: limit.user },
          thread: { processes: limit.thread },
        });
        const held: { scope: AccountScope; amount: number; release: () => void }[] = [];
        const sum = (fits: (scope: AccountScope) => boolean) =>
          held.filter(({ scope }) => fits(scope)).reduce((all, { amount }) => all + amount, 0);
        for (const { user: scope, amount, end } of steps) {
          held.splice(end, 1)[0]?.release();
          const would = [
            sum(() => true) + amount <= limit.tenant,
            sum((other) => other.user === scope.user) + amount <= limit.user,
            sum((other) => other.thread === scope.thread) + amount <= limit.thread,
          ];
          const reserve = () => ceilings.reserve(scope, { processes: amount });
          if (would.every(Boolean)) held.push({ scope, amount, ...reserve() });
          else expect(reserve).toThrow('processes');
        }
      }),
    );
  });
});

describe('ceilings in the call pipeline', () => {
  const shell = (step: number, more: object = {}) => ({
    key: { step, call: 2 },
    capability: 'shell.exec',
    args: { argv: ['ls'], ...more },
  });

  const world = async (ceilings: Partial<Ceilings>, options: Parameters<typeof callWorld>[0] = {}) => {
    const made = await callWorld(options);
    const reservations = new Reservations({ concurrentCalls: 100, callsPerRun: 100, accounts: accounts(ceilings, made.clock) });
    return { ...made, deps: { ...made.deps, reservations } };
  };

  it('EXE a command beyond the ceiling is refused before policy is asked, and nothing is executed', async () => {
    const started = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const { deps, scope, executed, asked } = await world(
      { user: { processes: 1 } },
      {
        tools: {
          exec: async () => {
            started.resolve();
            await gate.promise;
            return commandOutcome();
          },
        },
      },
    );
    const first = call(deps, scope, shell(0));
    await started.promise;
    const before = asked.length;
    await expect(call(deps, scope, shell(1))).rejects.toMatchObject({
      code: 'budget_exhausted',
      message: expect.stringContaining('user ada has used up processes (1)'),
    });
    expect([asked.length, executed.length]).toEqual([before, 0]);
    gate.resolve();
    await first;
    expect(await call(deps, scope, shell(2))).toMatchObject({ effect: 'done' });
  });

  it('OUT output is metered by what was kept, time by what the kernel has seen pass', async () => {
    const { deps, scope, clock } = await world(
      { windowMs: 24 * 3_600_000, user: { outputBytes: 5000, wallMs: 200_000 } },
      {
        tools: {
          exec: async () => {
            clock.advance(50_000);
            return commandOutcome({ stdout: 'x'.repeat(1000), wallMs: 1 });
          },
        },
      },
    );
    expect(await call(deps, scope, shell(0, { outputBytes: 1024 }))).toMatchObject({ effect: 'done' });
    // 1,000 are used; two streams of 2,048 would be too much, two of 1,024 are not.
    await expect(call(deps, scope, shell(1, { outputBytes: 2048 }))).rejects.toMatchObject({
      message: expect.stringContaining('outputBytes'),
    });
    await expect(call(deps, scope, shell(2, { outputBytes: 1024, timeoutMs: 160_000 }))).rejects.toMatchObject({
      message: expect.stringContaining('wallMs'),
    });
    expect(await call(deps, scope, shell(3, { outputBytes: 1024, timeoutMs: 150_000 }))).toMatchObject({ effect: 'done' });
  });

  it('tokens and money are metered by what the gateway tells', async () => {
    const { deps, scope } = await world(
      { user: { tokens: 10_000, moneyMicros: 100 } },
      {
        model: { generate: async () => ({ content: 'hi', toolCalls: [], usage: { inputTokens: 3000, outputTokens: 10, costMicros: 60 } }) },
      },
    );
    const ask = (step: number) =>
      call(deps, scope, { key: { step, call: 1 }, capability: 'model.generate', args: { messages: [{ role: 'user', content: 'x' }] } });
    await ask(0);
    await ask(1);
    await expect(ask(2)).rejects.toMatchObject({ message: expect.stringContaining('user ada has used up moneyMicros (100)') });
  });

  it('every shipped ceiling of an account is one that the pipeline reserves or an adapter charges', () => {
    for (const kind of ['tenant', 'user', 'thread'] as const)
      for (const [name, value] of Object.entries(CEILINGS[kind])) {
        expect(DIMENSIONS).toContain(name);
        expect(value).toBeGreaterThan(0);
      }
  });
});
