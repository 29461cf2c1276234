import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CompiledQuery, Kysely } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Database } from '../../adapters/store/mikro-orm/database.ts';
import { DurableSqliteDialect } from '../../adapters/store/mikro-orm/sqlite-dialect.ts';
import { openSqliteStore, storeOver } from '../../adapters/store/mikro-orm/store.ts';
import { newId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { violations } from '../property/store-invariants.ts';
import { lineOf, startChild } from './children.ts';
import { addUser, claim, claimedRun, post, refOf, saveCheckpoint, visible } from './scene.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-durable-'));
  file = join(dir, 'store.db');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

interface Acknowledged {
  readonly run: string;
  readonly thread?: string;
  readonly body?: string;
  readonly fence?: number;
  readonly call?: string;
  readonly state?: 'dispatched' | 'done';
  readonly reply?: string;
  readonly checkpoint?: string;
}

async function requireKept(store: Store, word: Acknowledged): Promise<void> {
  const told = JSON.stringify(word);
  const run = await store.runs.get(word.run);
  expect(run, told).toBeDefined();
  const messages = await store.threads.messages(run?.thread ?? '', { limit: 99 });
  if (word.body !== undefined) expect(messages[0]?.body, told).toBe(word.body);
  if (word.fence !== undefined) expect(run?.fence, told).toBeGreaterThanOrEqual(word.fence);
  if (word.call !== undefined) {
    const row = (await store.calls.list(word.run)).find(({ id }) => id === word.call);
    expect(['dispatched', 'done'].slice(word.state === 'done' ? 1 : 0), told).toContain(row?.state);
  }
  if (word.reply !== undefined) {
    expect(
      messages.map(({ body }) => body),
      told,
    ).toContain(word.reply);
    expect(
      (await store.deliveries.list({ run: word.run, limit: 99 })).map(({ body }) => body),
      told,
    ).toContain(word.reply);
  }
  if (word.checkpoint !== undefined) expect((await store.checkpoints.latest(word.run))?.body, told).toBe(word.checkpoint);
}

describe('a kernel that is killed', () => {
  test.each([3, 17, 40, 61])('after %i acknowledged writes has every one of them, whole, when the file is opened again', async (kills) => {
    const first = await openSqliteStore({ file });
    await addUser(first, 'ada');
    await first.close();
    const child = startChild('writer-process.ts', [file]);
    const words: Acknowledged[] = [];
    while (words.length < kills) words.push(JSON.parse(await lineOf(child)));
    await child.kill();
    // What it printed before it died counts as well.
    for await (const line of child.lines) words.push(JSON.parse(line));
    const store = await openSqliteStore({ file });
    for (const word of words) await requireKept(store, word);
    const seen = await visible(store);
    expect(violations(seen, seen)).toEqual([]);
    // A message and its delivery are one transaction: never one without the other.
    const deliveries = await store.deliveries.list({ limit: 10_000 });
    const posted = (await store.events.read(0, {}, 100_000)).filter(
      ({ type, data }) => type === 'message.posted' && data.author === 'agent',
    );
    expect(deliveries).toHaveLength(posted.length);
    await store.close();
  });

  test('control: an open transaction of a killed process is not there', async () => {
    const store = await openSqliteStore({ file });
    await addUser(store, 'ada');
    const child = startChild('unfinished-process.ts', [file]);
    expect(await lineOf(child)).toBe('written, not committed');
    await child.kill();
    expect((await store.users.list()).map(({ name }) => name)).toEqual(['ada']);
    await post(store);
    await store.close();
  });
});

test('a commit is synchronous: WAL with synchronous FULL and foreign keys, on the connection that writes', async () => {
  const store = await openSqliteStore({ file });
  const raw = new DatabaseSync(file);
  expect(raw.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' });
  raw.close();
  await store.close();
  const client = new Kysely({ dialect: new DurableSqliteDialect(file) });
  const pragma = async (name: string) => (await client.executeQuery(CompiledQuery.raw(`pragma ${name}`))).rows[0];
  expect(await pragma('synchronous')).toEqual({ synchronous: 2 });
  expect(await pragma('foreign_keys')).toEqual({ foreign_keys: 1 });
  expect(await pragma('busy_timeout')).toEqual({ timeout: 5000 });
  await client.destroy();
});

test('S1 two processes on one file: no run is claimed twice', async () => {
  const store = await openSqliteStore({ file });
  await addUser(store, 'ada');
  for (let i = 0; i < 40; i += 1) await post(store);
  const children = [startChild('claimer-process.ts', [file, 'a']), startChild('claimer-process.ts', [file, 'b'])];
  const claimed: string[][] = [];
  for (const child of children) {
    const ids: string[] = [];
    for await (const line of child.lines) ids.push(line);
    expect(await child.ended()).toBe(0);
    claimed.push(ids);
  }
  expect(claimed.flat()).toHaveLength(40);
  expect(new Set(claimed.flat()).size).toBe(40);
  expect(await claim(store, { perUser: 99 })).toBeUndefined();
  const all = await store.events.read(0, {}, 1000);
  expect(all.map(({ cursor }) => cursor)).toEqual(all.map((_, at) => at + 1));
  await store.close();
});

test('S1 the database itself refuses a second active run of a thread', async () => {
  const store = await openSqliteStore({ file });
  const run = await claimedRun(store);
  const second = await post(store, { thread: run.thread });
  const raw = new DatabaseSync(file);
  const activate = raw.prepare("update runs set state = 'running' where id = ?");
  expect(() => activate.run(second.run.id)).toThrow(/UNIQUE/);
  // Control: in another thread the same statement is admitted.
  const { run: other } = await post(store);
  expect(activate.run(other.id).changes).toBe(1);
  raw.close();
  await store.close();
});

test('BL-108 a full disk is told as such, changes nothing, and the store goes on when there is room', async () => {
  const db = await Database.open(file, { newId, instance: 'test' });
  const store = storeOver(db);
  const ref = refOf(await claimedRun(store));
  await saveCheckpoint(store, ref, 0, 'good');
  const before = await visible(store);
  const now = await db.get<{ page_count: number }>('pragma page_count', []);
  await db.get(`pragma max_page_count = ${(now?.page_count ?? 0) + 2}`, []);
  await expect(post(store, { body: 'x'.repeat(200_000) })).rejects.toMatchObject({ code: 'disk_full', retryable: true });
  expect(await visible(store)).toEqual(before);
  expect((await store.checkpoints.latest(ref.run))?.body).toBe('good');
  await db.get('pragma max_page_count = 1000000', []);
  await post(store, { body: 'x'.repeat(200_000) });
  await store.close();
});

test('a file that is no database is refused by name', async () => {
  writeFileSync(file, 'not a database, but long enough to be looked at as one'.repeat(100));
  await expect(openSqliteStore({ file })).rejects.toMatchObject({ code: 'store_damaged' });
});

test('a store that is closed finishes what has begun and refuses what comes later', async () => {
  const store = await openSqliteStore({ file });
  await addUser(store, 'ada');
  const begun = [post(store, { body: 'one' }), post(store, { body: 'two' })];
  const closed = store.close();
  await expect(post(store)).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(store.runs.get('run_none')).rejects.toMatchObject({ code: 'store_unavailable' });
  await Promise.all(begun);
  await closed;
  await store.close();
  const again = await openSqliteStore({ file });
  expect(await again.runs.list({ limit: 9 })).toHaveLength(2);
  await again.close();
});
