import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database } from '../../adapters/store/mikro-orm/database.ts';
import { MIGRATIONS } from '../../adapters/store/mikro-orm/migrations/list.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { newId } from '../../core/ids.ts';
import { startChild } from './children.ts';
import { addUser } from './scene.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-schema-'));
  file = join(dir, 'store.db');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('the migrations give exactly the schema of the entities', async () => {
  const db = await Database.open(file, { newId, instance: 'test' });
  expect((await db.drift()).trim()).toBe('');
  // Control: a difference is seen.
  await db.get('drop index events_run', []);
  expect(await db.drift()).toContain('events_run');
  await db.close();
});

test('several processes that open a new file at once migrate it once', async () => {
  const children = ['a', 'b', 'c'].map((holder) => startChild('claimer-process.ts', [file, holder]));
  expect(await Promise.all(children.map((child) => child.ended()))).toEqual([0, 0, 0]);
  const raw = new DatabaseSync(file);
  expect(raw.prepare('select count(*) as times from mikro_orm_migrations').get()).toEqual({ times: MIGRATIONS.length });
  raw.close();
});

test('opening again keeps what is there and prints nothing', async () => {
  const store = await openSqliteStore({ file });
  await addUser(store, 'ada');
  await store.close();
  const child = startChild('claimer-process.ts', [file, 'a']);
  const printed = [];
  for await (const line of child.lines) printed.push(line);
  expect([await child.ended(), printed]).toEqual([0, []]);
  const again = await openSqliteStore({ file });
  expect(await again.users.list()).toHaveLength(1);
  await again.close();
});

test('commits are counted when something became durable, and only then', async () => {
  const store = await openSqliteStore({ file });
  expect(store.commits).toBe(0);
  await addUser(store, 'ada');
  expect(store.commits).toBe(1);
  await store.runs.claim({ holder: 'k', nowMs: 1, leaseMs: 1, deadlineMs: 1, perUser: 1 });
  await store.runs.expire(1, 1);
  await store.users.list();
  await expect(addUser(store, 'ada')).rejects.toThrow();
  expect(store.commits).toBe(1);
  await store.close();
});
