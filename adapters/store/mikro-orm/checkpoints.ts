import type { CheckpointStore } from '../../../core/ports/store.ts';
import { firstIntact } from '../checkpoint-seal.ts';
import type { Database } from './database.ts';
import { CheckpointEntity } from './entities.ts';
import { toCheckpoint } from './rows.ts';

const DONE_ROWS = "select count(*) as rows from calls where run = ? and state = 'done'";

export function checkpointStore(db: Database): CheckpointStore {
  return {
    async latest(run) {
      const newestFirst = await db.find(CheckpointEntity, { run, safe: true }, { orderBy: { position: 'desc' } });
      if (newestFirst.length === 0) return undefined;
      const done = await db.get<{ rows: number }>(DONE_ROWS, [run]);
      return firstIntact(newestFirst.map(toCheckpoint), done?.rows ?? 0);
    },
  };
}
