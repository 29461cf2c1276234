import fc from 'fast-check';
import type { CallKey, EffectClass } from '../../core/capability/types.ts';
import type { Store } from '../../core/ports/store.ts';
import type { AttemptRef } from '../../core/run/types.ts';

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

export const NOWHERE: AttemptRef = { run: 'run_none', fence: 1 };

export const command = <W>(
  name: string,
  arbitrary: fc.Arbitrary<W>,
  run: (w: W, scene: Scene, store: Store) => Promise<unknown>,
): fc.Arbitrary<Command> => arbitrary.map((w) => ({ name, with: w, run: (scene, store) => run(w, scene, store) }));

/** Mostly the newest, sometimes an old (stale) or an unknown one. */
export const index = fc.oneof(
  { weight: 5, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: 3 }) },
  { weight: 1, arbitrary: fc.nat() },
);
export const key: fc.Arbitrary<CallKey> = fc.record({ step: fc.nat({ max: 2 }), call: fc.nat({ max: 1 }) });
export const effectClass = fc.constantFrom<EffectClass>('pure', 'idempotent', 'once');
