import type { EventStore } from '../../../core/ports/store.ts';
import { requireStorable } from '../storable.ts';
import { append, type Memory } from './state.ts';

export function memoryEvents(memory: Memory): EventStore {
  return {
    async append(event, nowMs) {
      requireStorable(event);
      return append(memory, event, nowMs);
    },
    async read(from, { tenant, thread, run }, limit) {
      return memory.state.events
        .filter((event) => event.cursor > from)
        .filter((event) => tenant === undefined || event.tenant === tenant)
        .filter((event) => thread === undefined || event.thread === thread)
        .filter((event) => run === undefined || event.run === run)
        .slice(0, limit);
    },
    async last({ thread, run } = {}) {
      return memory.state.events.findLast(
        (event) => (thread === undefined || event.thread === thread) && (run === undefined || event.run === run),
      );
    },
    changed: (from, signal) => memory.changes.changed(from, signal),
  };
}
