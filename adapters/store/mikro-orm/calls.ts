import type { CallStore } from '../../../core/ports/store.ts';
import { isStorable } from '../storable.ts';
import { closeCall } from './close-call.ts';
import type { Database } from './database.ts';
import { type CallRecord, DecisionEntity } from './entities.ts';
import { judgeCalls } from './judge-calls.ts';
import { FIND_CALL, openCall } from './open-call.ts';
import { resolveCall } from './resolve-call.ts';
import { toCall, toDecision } from './rows.ts';
import { spentSince } from './spent.ts';

export function callStore(db: Database): CallStore {
  return {
    open: (ref, call) => openCall(db, ref, call),
    async find(run, key) {
      if (!isStorable(run)) return undefined;
      const row = await db.get<CallRecord>(FIND_CALL, [run, key.step, key.call]);
      return row === undefined ? undefined : toCall(row);
    },
    close: (ref, close) => closeCall(db, ref, close),
    judge: (ref, nowMs) => judgeCalls(db, ref, nowMs),
    resolve: (call, as, event, nowMs) => resolveCall(db, call, as, event, nowMs),
    spent: (sinceMs) => spentSince(db, sinceMs),
    async list(run) {
      if (!isStorable(run)) return [];
      return (await db.all<CallRecord>('select * from calls where run = ? order by step, call', [run])).map(toCall);
    },
    async decisions(run) {
      return (await db.find(DecisionEntity, { run }, { orderBy: { position: 'asc' } })).map(toDecision);
    },
  };
}
