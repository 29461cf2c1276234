import type { Message } from '../../../core/run/types.ts';
import type { Database, Tx } from './database.ts';
import type { MessageRecord } from './entities.ts';
import { toMessage } from './rows.ts';

const INSERT = `
insert into messages (thread, seq, id, author, user_name, run, steers, created_at_ms, body)
values (?1, (select coalesce(max(seq), 0) + 1 from messages where thread = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)
returning *`;

/** Appends a message to a thread within the caller's transaction, at the next position. */
export async function appendMessage(
  db: Database,
  tx: Tx,
  message: Omit<Message, 'id' | 'seq' | 'createdAtMs'> & { readonly nowMs: number },
): Promise<Message> {
  const { thread, author, user, run, steers, body, nowMs } = message;
  const id = db.newId('message', nowMs);
  return toMessage((await tx.get<MessageRecord>(INSERT, [thread, id, author, user, run, steers ? 1 : 0, nowMs, body])) as MessageRecord);
}
