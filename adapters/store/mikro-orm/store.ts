import { randomUUID } from 'node:crypto';
import { newId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import { approvalStore } from './approvals.ts';
import { callStore } from './calls.ts';
import { checkpointStore } from './checkpoints.ts';
import { Database, type NewId } from './database.ts';
import { decisionStore } from './decisions.ts';
import { deliveryStore } from './deliveries.ts';
import { eventStore } from './events.ts';
import { retentionStore } from './prune.ts';
import { runStore } from './runs.ts';
import { threadStore } from './threads.ts';
import { userStore } from './users.ts';

export interface SqliteStoreOptions {
  /** Path of the database; made, with its schema, when it is missing. Its directory must exist and be private. */
  readonly file: string;
  /** Makes ids; tests inject theirs. */
  readonly newId?: NewId;
}

export interface SqliteStore extends Store {
  /** Durable transactions since it was opened; reads, and writes that found nothing to change, are not counted. */
  readonly commits: number;
}

/**
 * The store in one SQLite file. A write is on disk (WAL, `synchronous = FULL`) before its promise resolves. Migrations have run, once, under
 * a lock. Does not take the state directory's lock: `lockStateDir` does.
 *
 * @throws StoreError `store_damaged` `schema_newer` (the file is left as it is), `store_unavailable` `disk_full`
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  return storeOver(await Database.open(options.file, { newId: options.newId ?? newId, instance: randomUUID() }));
}

/** The port's parts over one open database. @internal */
export function storeOver(db: Database): SqliteStore {
  return {
    users: userStore(db),
    threads: threadStore(db),
    runs: runStore(db),
    calls: callStore(db),
    decisions: decisionStore(db),
    approvals: approvalStore(db),
    checkpoints: checkpointStore(db),
    events: eventStore(db),
    deliveries: deliveryStore(db),
    retention: retentionStore(db),
    get commits() {
      return db.commits;
    },
    // Writes a page of the file's head with the value it has: a commit like any other, and nobody's row.
    probe: () => db.write(async (tx) => void (await tx.run('pragma user_version = 0', []))),
    close: () => db.close(),
  };
}
