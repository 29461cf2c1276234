import { StoreError } from '../../../core/errors.ts';
import type { DecisionRow, DecisionStore } from '../../../core/ports/store.ts';
import { isStorable, requireStorable } from '../storable.ts';
import type { Database, Tx } from './database.ts';
import type { DecisionRecord } from './entities.ts';
import { requireHeld } from './fence.ts';
import { toDecision } from './rows.ts';

const ADD = `
insert into decisions (run, position, id, kind, capability, input_digest, input, at_ms, decision)
values (?1, (select coalesce(max(position), 0) + 1 from decisions where run = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)`;

const NEWEST = 'select * from decisions where at_ms >= ? order by at_ms desc, id desc limit ?';

/** Appends a decision within the caller's transaction. */
export async function addDecision(tx: Tx, row: DecisionRow): Promise<void> {
  const { run, id, kind, capability, inputDigest, input, atMs, decision } = row;
  const kept = input === undefined ? undefined : JSON.stringify(input);
  await tx.run(ADD, [run, id, kind, capability, inputDigest, kept, atMs, JSON.stringify(decision)]);
}

export function decisionStore(db: Database): DecisionStore {
  return {
    async add(row, ref) {
      requireStorable(row);
      await db.write(async (tx) => {
        if (ref !== undefined) await requireHeld(tx, ref);
        const known = await tx.get<{ id: string }>('select id from runs where id = ?', [row.run]);
        if (known === undefined) throw new StoreError('not_found', `There is no run ${row.run}`);
        const taken = await tx.get<{ id: string }>('select id from decisions where id = ?', [row.id]);
        if (taken !== undefined) throw new StoreError('conflict', 'The decision exists');
        await addDecision(tx, row);
      });
    },
    async get(id) {
      if (!isStorable(id)) return undefined;
      const row = await db.get<DecisionRecord>('select * from decisions where id = ?', [id]);
      return row === undefined ? undefined : toDecision(row);
    },
    async since(sinceMs, limit) {
      return (await db.all<DecisionRecord>(NEWEST, [sinceMs, limit])).map(toDecision).reverse();
    },
  };
}
