import type { EventStore } from '../../../core/ports/store.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import type { Database } from './database.ts';
import { EventEntity } from './entities.ts';
import { toEvent } from './rows.ts';

export function eventStore(db: Database): EventStore {
  return {
    async append(event, nowMs) {
      requireStorable(event);
      return db.write((tx) => appendEvent(db, tx, event, nowMs));
    },
    async read(from, { tenant, thread, run }, limit) {
      const where = {
        cursor: { $gt: from },
        ...(tenant === undefined ? {} : { tenant }),
        ...(thread === undefined ? {} : { thread }),
        ...(run === undefined ? {} : { run }),
      };
      return (await db.find(EventEntity, where, { orderBy: { cursor: 'asc' }, limit })).map(toEvent);
    },
    async last({ thread, run } = {}) {
      const where = { ...(thread === undefined ? {} : { thread }), ...(run === undefined ? {} : { run }) };
      return (await db.find(EventEntity, where, { orderBy: { cursor: 'desc' }, limit: 1 })).map(toEvent)[0];
    },
    changed: (from, signal) => db.changes.changed(from, signal),
  };
}
