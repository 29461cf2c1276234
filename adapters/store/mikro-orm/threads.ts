import { StoreError } from '../../../core/errors.ts';
import type { ThreadStore } from '../../../core/ports/store.ts';
import { isTerminal, type Run } from '../../../core/run/types.ts';
import { messagePosted, runQueued, runSteered } from '../own-events.ts';
import { isStorable, requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import { appendMessage } from './append-message.ts';
import type { Database, Tx } from './database.ts';
import { type MessageRecord, type RunRecord, ThreadEntity, type ThreadRecord } from './entities.ts';
import { toMessage, toRun, toThread } from './rows.ts';
import { userExists } from './users.ts';

const ADD_THREAD = `
insert into threads (id, tenant, position, created_at_ms)
values (?, ?, (select coalesce(max(position), 0) + 1 from threads), ?)
returning *`;

const ADD_RUN = `
insert into runs (id, position, tenant, thread, actor, origin, message, state, fence, reclaims, placement, harness, cancel_requested, created_at_ms)
values (?, (select coalesce(max(position), 0) + 1 from runs), ?, ?, ?, ?, '', 'queued', 0, 0, ?, ?, 0, ?)`;

const OWN_THREADS = `
select threads.* from threads where id in (select thread from runs where tenant = ? and actor = ?) order by threads.position desc limit ?`;

const OPEN_AGAIN = 'update threads set pruned = 0 where id = ? and pruned = 1';

const MESSAGES = 'select * from messages where thread = ? and seq > ? order by seq desc limit ?';

const NAME_MESSAGE = 'update runs set message = ? where id = ? returning *';

export function threadStore(db: Database): ThreadStore {
  return {
    async post(post) {
      requireStorable(post);
      const { tenant, actor, origin, body, placement, harness, nowMs } = post;
      return db.write(async (tx) => {
        if (!(await userExists(tx, tenant, actor))) throw new StoreError('not_found', `There is no user ${tenant}/${actor}`);
        const thread = toThread(
          post.thread === undefined ? await addThread(db, tx, tenant, nowMs) : await threadOf(tx, tenant, post.thread),
        );
        await tx.run(OPEN_AGAIN, [thread.id]);
        const run = db.newId('run', nowMs);
        // The run first, then its message: each names the other.
        await tx.run(ADD_RUN, [run, tenant, thread.id, actor, origin, placement, harness, nowMs]);
        const message = await appendMessage(db, tx, { thread: thread.id, author: 'user', user: actor, run, body, steers: false, nowMs });
        const queued: Run = toRun((await tx.get<RunRecord>(NAME_MESSAGE, [message.id, run])) as RunRecord);
        await appendEvent(db, tx, messagePosted(queued, message), nowMs);
        await appendEvent(db, tx, runQueued(queued), nowMs);
        return { thread, message, run: queued };
      });
    },
    async steer({ tenant, run: id, actor, body, nowMs }) {
      requireStorable([tenant, id, actor, body]);
      return db.write(async (tx) => {
        const row = await tx.get<RunRecord>('select * from runs where id = ? and tenant = ? and actor = ?', [id, tenant, actor]);
        if (row === undefined) throw new StoreError('not_found', `There is no run ${id} of ${tenant}/${actor}`);
        const run = toRun(row);
        if (isTerminal(run.state)) throw new StoreError('conflict', `The run has ended (${run.state})`);
        const message = await appendMessage(db, tx, {
          thread: run.thread,
          author: 'user',
          user: actor,
          run: id,
          body,
          steers: true,
          nowMs,
        });
        await appendEvent(db, tx, runSteered(run, message), nowMs);
        return message;
      });
    },
    async get(tenant, id) {
      return (await db.find(ThreadEntity, { id, tenant })).map(toThread)[0];
    },
    async list(tenant, limit, actor) {
      if (actor !== undefined)
        return isStorable([tenant, actor]) ? (await db.all<ThreadRecord>(OWN_THREADS, [tenant, actor, limit])).map(toThread) : [];
      return (await db.find(ThreadEntity, { tenant }, { orderBy: { position: 'desc' }, limit })).map(toThread);
    },
    async messages(thread, { afterSeq = 0, limit }) {
      if (!isStorable(thread)) return [];
      const newestFirst = await db.all<MessageRecord>(MESSAGES, [thread, afterSeq, limit]);
      return newestFirst.map(toMessage).reverse();
    },
  };
}

async function addThread(db: Database, tx: Tx, tenant: string, nowMs: number): Promise<ThreadRecord> {
  return (await tx.get<ThreadRecord>(ADD_THREAD, [db.newId('thread', nowMs), tenant, nowMs])) as ThreadRecord;
}

async function threadOf(tx: Tx, tenant: string, id: string): Promise<ThreadRecord> {
  const row = await tx.get<ThreadRecord>('select * from threads where id = ? and tenant = ?', [id, tenant]);
  if (row === undefined) throw new StoreError('not_found', `There is no thread ${id}`);
  return row;
}
