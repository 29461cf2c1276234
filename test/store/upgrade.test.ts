import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database } from '../../adapters/store/mikro-orm/database.ts';
import { MIGRATIONS } from '../../adapters/store/mikro-orm/migrations/list.ts';
import { newId } from '../../core/ids.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-upgrade-'));
  file = join(dir, 'store.db');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

type Row = Readonly<Record<string, unknown>>;

/** A database as a version with the first so many migrations left it, a row in every table. */
function databaseOf(migrations: number): Map<string, readonly Row[]> {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  database.exec('create table mikro_orm_migrations (id integer primary key autoincrement, name text, executed_at datetime)');
  for (const { name, class: Migration } of MIGRATIONS.slice(0, migrations)) {
    Migration.prototype.up.call({ addSql: (sql: string) => database.exec(sql) } as never);
    database.prepare('insert into mikro_orm_migrations (name, executed_at) values (?, 1)').run(name);
  }
  for (const table of tablesOf(database)) {
    const columns = database.prepare(`select name, type from pragma_table_info('${table}')`).all() as { name: string; type: string }[];
    // Text is JSON where anything reads it as that.
    const values = columns.map(({ type }) => (/int/i.test(type) ? 1 : '{"files": [{"sha256": "abc"}]}'));
    database.prepare(`insert into ${table} (${columns.map(({ name }) => name)}) values (${columns.map(() => '?')})`).run(...values);
  }
  const rows = rowsOf(database);
  database.close();
  return rows;
}

const tablesOf = (database: DatabaseSync): readonly string[] =>
  database
    .prepare(`select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'mikro_orm_migrations'`)
    .all()
    .map(({ name }) => String(name));

const rowsOf = (database: DatabaseSync): Map<string, readonly Row[]> =>
  new Map(tablesOf(database).map((table) => [table, database.prepare(`select * from ${table}`).all()]));

test.each(MIGRATIONS.slice(0, -1).map(({ name }, at) => [name, at + 1] as const))(
  'a database of the version that ended with %s is brought up to date, and no row of it is lost or changed',
  async (_, migrations) => {
    const before = databaseOf(migrations);
    expect(before.size).toBeGreaterThan(8);
    const database = await Database.open(file, { newId, instance: 'test' });
    expect((await database.drift()).trim()).toBe('');
    await database.close();
    const raw = new DatabaseSync(file);
    const after = rowsOf(raw);
    expect(raw.prepare('select count(*) as times from mikro_orm_migrations').get()).toEqual({ times: MIGRATIONS.length });
    raw.close();
    for (const [table, rows] of before) expect(after.get(table), table).toMatchObject(rows);
  },
);
