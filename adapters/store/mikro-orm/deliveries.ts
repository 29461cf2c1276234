import { StoreError } from '../../../core/errors.ts';
import type { DeliveryStore } from '../../../core/ports/store.ts';
import { deliveryUnknown } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import type { Database } from './database.ts';
import { DeliveryEntity, type DeliveryRecord } from './entities.ts';
import { toDelivery } from './rows.ts';

const NEXT = `
update deliveries set state = 'sending', sender = ?1, attempts = attempts + 1, updated_at_ms = ?2
where state = 'prepared' and id = (
  select candidate.id
  from deliveries candidate
  where candidate.state = 'prepared'
    and not exists (
      select 1 from deliveries older
      where older.thread = candidate.thread and older.state in ('prepared', 'sending') and older.position < candidate.position)
  order by candidate.attempts, candidate.position
  limit 1)
returning *`;

const FINISH = "update deliveries set state = ?, sender = null, updated_at_ms = ? where id = ? and state = 'sending' returning *";

// Both conditions on `state`: the first one is the partial index.
const SWEEP = `
update deliveries set state = 'unknown', sender = null, updated_at_ms = ?
where state in ('prepared', 'sending') and state = 'sending' and sender <> ?
returning *`;

export function deliveryStore(db: Database): DeliveryStore {
  return {
    async next(nowMs) {
      return db.write(async (tx) => {
        const row = await tx.get<DeliveryRecord>(NEXT, [db.instance, nowMs]);
        return row === undefined ? undefined : toDelivery(row);
      });
    },
    async finish(id, to, event, nowMs) {
      requireStorable([id, event]);
      return db.write(async (tx) => {
        const row = await tx.get<DeliveryRecord>(FINISH, [to, nowMs, id]);
        if (row === undefined) {
          const known = (await tx.get('select 1 from deliveries where id = ?', [id])) !== undefined;
          throw known
            ? new StoreError('conflict', 'The delivery is not being sent')
            : new StoreError('not_found', `There is no delivery ${id}`);
        }
        await appendEvent(db, tx, event, nowMs);
        return toDelivery(row);
      });
    },
    async sweep(nowMs) {
      return db.write(async (tx) => {
        const swept = [...(await tx.all<DeliveryRecord>(SWEEP, [nowMs, db.instance]))]
          .sort((a, b) => a.position - b.position)
          .map(toDelivery);
        for (const row of swept) await appendEvent(db, tx, deliveryUnknown(row), nowMs);
        return swept;
      });
    },
    async list({ tenant, run, states, limit }) {
      const where = {
        ...(tenant === undefined ? {} : { tenant }),
        ...(run === undefined ? {} : { run }),
        ...(states === undefined ? {} : { state: { $in: [...states] } }),
      };
      return (await db.find(DeliveryEntity, where, { orderBy: { position: 'desc' }, limit })).map(toDelivery);
    },
  };
}
