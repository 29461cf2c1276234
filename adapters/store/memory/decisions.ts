import { StoreError } from '../../../core/errors.ts';
import type { DecisionRow, DecisionStore } from '../../../core/ports/store.ts';
import { requireStorable } from '../storable.ts';
import { copyOf, type Memory, requireHeld } from './state.ts';

const byTime = (a: DecisionRow, b: DecisionRow): number => a.atMs - b.atMs || (a.id < b.id ? -1 : 1);

export function memoryDecisions(memory: Memory): DecisionStore {
  const { decisions, runs } = memory.state;
  return {
    async add(row, ref) {
      requireStorable(row);
      if (ref !== undefined) requireHeld(memory.state, ref);
      if (!runs.has(row.run)) throw new StoreError('not_found', `There is no run ${row.run}`);
      if (decisions.some(({ id }) => id === row.id)) throw new StoreError('conflict', 'The decision exists');
      decisions.push(copyOf(row));
    },
    async get(id) {
      return decisions.find((row) => row.id === id);
    },
    async since(sinceMs, limit) {
      const found = decisions.filter((row) => row.atMs >= sinceMs).sort(byTime);
      return found.slice(Math.max(0, found.length - limit));
    },
  };
}
