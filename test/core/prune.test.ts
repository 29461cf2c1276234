import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import type { PruneBefore, PruneCounts, RetentionStore } from '../../core/ports/retention-store.ts';
import { Pruner } from '../../core/run/prune.ts';
import type { Clock } from '../../core/seams/clock.ts';

const DAY_MS = 86_400_000;
const NOTHING: PruneCounts = { decisions: 0, calls: 0, permits: 0, approvals: 0, files: 0, deliveries: 0, events: 0 };

/** A clock on which a test lets the one thing happen that waits. */
class StepClock implements Clock {
  waiting: { readonly ms: number; readonly fn: () => void } | undefined;
  #came: (() => void) | undefined;
  now = () => 1000 * DAY_MS;

  after(ms: number, fn: () => void): () => void {
    const own = { ms, fn };
    this.waiting = own;
    this.#came?.();
    return () => {
      if (this.waiting === own) this.waiting = undefined;
    };
  }

  /** Lets it happen; resolves when something waits again. @returns how long that waits */
  async step(): Promise<number | undefined> {
    const again = new Promise<void>((resolve) => {
      this.#came = resolve;
    });
    const { fn } = this.waiting ?? { fn: () => expect.fail('nothing waits') };
    this.waiting = undefined;
    fn();
    await again;
    return this.waitsMs();
  }

  waitsMs(): number | undefined {
    return this.waiting?.ms;
  }
}

function world(answers: readonly { readonly counts?: Partial<PruneCounts>; readonly next?: number; readonly error?: Error }[]) {
  const asked: { readonly before: PruneBefore; readonly limit: number; readonly from: number | undefined }[] = [];
  const retention: RetentionStore = {
    async prune(before, limit, from) {
      const answer = answers[asked.length];
      asked.push({ before, limit, from });
      if (answer?.error !== undefined) throw answer.error;
      return { counts: { ...NOTHING, ...answer?.counts }, next: answer?.next };
    },
  };
  const clock = new StepClock();
  const errors: unknown[] = [];
  const store = { ...createMemoryStore(), retention };
  const pruner = new Pruner({ store, clock, retention: { decisionDays: 30, threadDays: 90 }, onError: (error) => errors.push(error) });
  return { asked, clock, errors, store, pruner };
}

describe('what is kept no longer', () => {
  it('is removed batch by batch, a moment left to others in between, and told in one event with its counts', async () => {
    const { asked, clock, store, pruner } = world([{ counts: { calls: 3 }, next: 7 }, { counts: { calls: 2, files: 1 }, next: 9 }, {}]);
    pruner.start();
    expect(asked).toEqual([]);
    expect(clock.waitsMs()).toBe(60_000);
    expect(await clock.step()).toBe(100);
    expect(await clock.step()).toBe(100);
    expect(await clock.step()).toBe(3_600_000);
    expect(asked.map(({ from }) => from)).toEqual([undefined, 7, 9]);
    expect(asked[0]).toMatchObject({ before: { decisionsBeforeMs: 970 * DAY_MS, threadsBeforeMs: 910 * DAY_MS } });
    expect(await store.events.read(0, {}, 10)).toMatchObject([{ type: 'store.pruned', data: { ...NOTHING, calls: 5, files: 1 } }]);
    await pruner[Symbol.asyncDispose]();
  });

  it('a pass that removes nothing says nothing', async () => {
    const { clock, store, pruner } = world([{}]);
    pruner.start();
    await clock.step();
    expect(await store.events.read(0, {}, 10)).toEqual([]);
    await pruner[Symbol.asyncDispose]();
  });

  it('a pass that fails is told, with what it removed, and the next one comes in its time', async () => {
    const { asked, clock, errors, store, pruner } = world([{ counts: { events: 4 }, next: 1 }, { error: new Error('disk') }, {}]);
    pruner.start();
    await clock.step();
    expect(await clock.step()).toBe(3_600_000);
    expect(errors).toEqual([new Error('disk')]);
    expect(await store.events.read(0, {}, 10)).toMatchObject([{ data: { events: 4 } }]);
    await clock.step();
    expect(asked).toHaveLength(3);
    await pruner[Symbol.asyncDispose]();
  });

  it('a kernel that closes ends the pass between two batches', async () => {
    const { asked, clock, pruner } = world([{ counts: { events: 4 }, next: 1 }, {}]);
    pruner.start();
    await clock.step();
    await pruner[Symbol.asyncDispose]();
    expect(asked).toHaveLength(1);
    expect(clock.waiting).toBeUndefined();
  });
});
