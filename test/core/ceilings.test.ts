import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { type AccountScope, type Amounts, CeilingAccounts } from '../../core/capability/ceilings.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import { SandboxError } from '../../core/errors.ts';
import { CEILINGS, type Ceilings, DIMENSIONS, type Dimension, isMetered } from '../../core/limits.ts';
import { callWorld, commandOutcome, ManualClock } from '../support/call-world.ts';

const WINDOW_MS = 60_000;
const ada: AccountScope = { tenant: 'acme', user: 'ada', thread: 't1' };
const adaElsewhere: AccountScope = { ...ada, thread: 't2' };
const bo: AccountScope = { tenant: 'acme', user: 'bo', thread: 't3' };

const accounts = (ceilings: Partial<Ceilings>, clock = new ManualClock()) =>
  new CeilingAccounts({ windowMs: WINDOW_MS, tenant: {}, user: {}, thread: {}, ...ceilings }, clock);

/** How much of a dimension may still be reserved. */
function room(reservations: Reservations, scope: AccountScope & { readonly run: string }, dimension: Dimension): number {
  let [fits, over] = [0, 2e9];
  while (over - fits > 1) {
    const middle = Math.floor((fits + over) / 2);
    try {
      reservations.reserve({ ...scope, run: `run_${middle}` }, { step: 0, call: 0 }, { [dimension]: middle }).release();
      fits = middle;
    } catch {
      over = middle;
    }
  }
  return fits;
}

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

describe('a kernel that starts anew', () => {
  it('goes on with what the ledger says of the present window, and with nothing else', () => {
    const clock = new ManualClock();
    const ceilings = accounts({ tenant: { wallMs: 100 }, user: { wallMs: 81, processes: 1 }, thread: { wallMs: 50 } }, clock);
    expect(ceilings.windowStartMs).toBeLessThanOrEqual(clock.now());
    expect(ceilings.windowStartMs).toBeGreaterThan(clock.now() - WINDOW_MS);
    expect(ceilings.windowStartMs % WINDOW_MS).toBe(0);
    ceilings.restore([
      { ...ada, amounts: { wallMs: 45, processes: 7 } },
      { ...adaElsewhere, amounts: { wallMs: 30 } },
    ]);
    expect(() => ceilings.reserve(ada, { wallMs: 6 })).toThrow('thread t1 has used up wallMs (50)');
    expect(() => ceilings.reserve({ ...ada, thread: 't9' }, { wallMs: 7 })).toThrow('user ada has used up wallMs (81)');
    expect(() => ceilings.reserve(bo, { wallMs: 26 })).toThrow('tenant acme has used up wallMs (100)');
    // What is held is a matter of calls that are alive.
    ceilings.reserve(ada, { wallMs: 5, processes: 1 }).release();
    clock.advance(WINDOW_MS);
    ceilings.reserve(ada, { wallMs: 50 });
  });

  it('counts what was reserved and told no end, as the kernel does that lived through it', () => {
    const ceilings = accounts({ user: { wallMs: 100, processes: 1 } });
    const lost = ceilings.reserve(ada, { wallMs: 60, processes: 1 });
    lost.forfeit();
    lost.release();
    expect(() => ceilings.reserve(ada, { wallMs: 41 })).toThrow('wallMs');
    ceilings.reserve(ada, { wallMs: 40, processes: 1 });
  });
});

describe('calls of a run that is redriven', () => {
  const scope = { ...ada, run: 'run_1' };
  const key = (step: number) => ({ step, call: 0 });

  it('are counted by its ledger: each once, however often the run is claimed', () => {
    const reservations = new Reservations({ concurrentCalls: 100, callsPerRun: 3 });
    reservations.resume('run_1', [key(0), key(1)]);
    expect([reservations.callsOf('run_1'), reservations.callsLeftOf('run_1')]).toEqual([2, 1]);
    for (const step of [0, 1]) reservations.reserve(scope, key(step));
    reservations.reserve(scope, key(2));
    expect(() => reservations.reserve(scope, key(3))).toThrow('run run_1 has used up calls_per_run (3)');
    // A key is free once: a loop that asks for the same one forever comes to its end too.
    expect(() => reservations.reserve(scope, key(0))).toThrow('calls_per_run');
  });

  it('a run with all its calls made may come to each of them again, and to no other', () => {
    const reservations = new Reservations({ concurrentCalls: 100, callsPerRun: 2 });
    reservations.resume('run_1', [key(0), key(1)]);
    expect(() => reservations.reserve(scope, key(2))).toThrow('calls_per_run');
    for (const step of [0, 1]) reservations.reserve(scope, key(step)).release();
  });

  it('control: a kernel that does not ask the ledger counts from nothing', () => {
    const reservations = new Reservations({ concurrentCalls: 100, callsPerRun: 2 });
    for (const step of [2, 3]) reservations.reserve(scope, key(step));
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

  it.each([
    ['host-loop-shell', 'is lost with its sandbox'],
    ['persistent-per-user', 'is never reported'],
  ] as const)('under %s, a command that %s counts all it had reserved', async (placement, _) => {
    const { deps, scope } = await world(
      { windowMs: 24 * 3_600_000, user: { wallMs: 100_000, processes: 1 } },
      {
        placement,
        tools: {
          exec: async () => {
            throw new SandboxError('guest_lost', 'gone');
          },
        },
      },
    );
    const lost = call(deps, scope, shell(0, { timeoutMs: 60_000 }));
    if (placement === 'host-loop-shell') await expect(lost).rejects.toMatchObject({ code: 'guest_lost' });
    else expect(await lost).toMatchObject({ effect: 'permit' });
    deps.permits.drop(scope.run);
    await expect(call(deps, scope, shell(1, { timeoutMs: 40_001 }))).rejects.toMatchObject({
      message: expect.stringContaining('wallMs (100000)'),
    });
    // What it held is free.
    await call(deps, scope, shell(2, { timeoutMs: 40_000 })).catch((error) => expect(error.code).toBe('guest_lost'));
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

  it('a new kernel over the same ledger refuses what the old one would, in any history of ends and losses', async () => {
    const step = fc.record({
      end: fc.constantFrom('done', 'lost', 'failed'),
      timeoutMs: fc.integer({ min: 1000, max: 20_000 }),
      tookMs: fc.integer({ min: 0, max: 30_000 }),
      printed: fc.nat(2000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const ceilings = { windowMs: 24 * 3_600_000, user: { wallMs: 1e9, outputBytes: 1e9 } };
        let now: (typeof steps)[number] | undefined;
        const { deps, scope, clock, store } = await world(ceilings, {
          tools: {
            exec: async () => {
              clock.advance(now?.tookMs ?? 0);
              if (now?.end === 'lost') throw new SandboxError('guest_lost', 'gone');
              if (now?.end === 'failed') throw new SandboxError('io_failed', 'no');
              return commandOutcome({ stdout: 'x'.repeat(now?.printed ?? 0) });
            },
          },
        });
        for (const [at, one] of steps.entries()) {
          now = one;
          await call(deps, scope, shell(at, { outputBytes: 1024, timeoutMs: one.timeoutMs })).catch((error) =>
            // Lost, or told too late to count.
            expect(error.code).toBe(one.end === 'lost' ? 'guest_lost' : 'permit_expired'),
          );
        }
        const restarted = accounts(ceilings, clock);
        restarted.restore(await store.calls.spent(restarted.windowStartMs));
        for (const dimension of ['wallMs', 'outputBytes'] as const) {
          const left = room(deps.reservations, scope, dimension);
          expect(room(new Reservations({ concurrentCalls: 100, callsPerRun: 100, accounts: restarted }), scope, dimension), dimension).toBe(
            left,
          );
          // Control: one that does not ask the ledger has all of it again.
          if (steps.some(({ end }) => end === 'lost')) expect(left).toBeLessThan(1e9);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('every shipped ceiling of an account is one that the pipeline reserves or an adapter charges', () => {
    for (const kind of ['tenant', 'user', 'thread'] as const)
      for (const [name, value] of Object.entries(CEILINGS[kind])) {
        expect(DIMENSIONS).toContain(name);
        expect(value).toBeGreaterThan(0);
      }
  });
});
