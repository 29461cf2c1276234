import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { close, open, post, reply, saveCheckpoint } from './scene.ts';

/**
 * Writes without end to the file it is given, as a kernel would, and acknowledges each write on standard output after its promise has
 * resolved. It is killed in the middle of it.
 */
const [file = ''] = process.argv.slice(2);
const store = await openSqliteStore({ file });

const acknowledge = (words: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(words)}\n`);

for (let turn = 0; ; turn += 1) {
  const { run, thread } = await post(store, { body: `message ${turn}` });
  acknowledge({ run: run.id, thread: thread.id, body: `message ${turn}` });
  const claimed = await store.runs.claim({ holder: 'writer', nowMs: turn, leaseMs: 1000, deadlineMs: 1e12, perUser: 1e6 });
  if (claimed === undefined) throw new Error('nothing to claim');
  const ref = { run: claimed.id, fence: claimed.fence };
  acknowledge({ run: ref.run, fence: ref.fence });
  const { row } = await open(store, ref, { key: { step: 0, call: 0 }, permit: `p${turn}` });
  acknowledge({ run: ref.run, call: row.id, state: 'dispatched' });
  await close(store, ref, `p${turn}`, { effect: { kind: 'message', body: `reply ${turn}` } });
  acknowledge({ run: ref.run, call: row.id, state: 'done', reply: `reply ${turn}` });
  await saveCheckpoint(store, ref, 1, `checkpoint ${turn}`);
  acknowledge({ run: ref.run, checkpoint: `checkpoint ${turn}` });
  await reply(store, ref, 2, `second reply ${turn}`);
}
