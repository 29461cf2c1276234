import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';

/** Claims until there is nothing left, and prints what it got. */
const [file = '', holder = ''] = process.argv.slice(2);
const store = await openSqliteStore({ file });
for (;;) {
  const run = await store.runs.claim({ holder, nowMs: 1, leaseMs: 1000, deadlineMs: 1e12, perUser: 1000 });
  if (run === undefined) break;
  process.stdout.write(`${run.id}\n`);
}
await store.close();
