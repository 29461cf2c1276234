import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreError } from '../../../core/errors.ts';
import { LOST_COMMITS, logLosesCommits } from './log-health.ts';
import { MIGRATIONS } from './migrations/list.ts';
import { damaged, storeErrorOf } from './sqlite-errors.ts';

/**
 * Why the database in `file` cannot be used, after a look at every page of it; undefined when it can, also when there is none yet. Changes and makes
 * nothing, and may be asked while a kernel has it open.
 */
export function databaseFault(file: string): StoreError | undefined {
  if (!existsSync(file)) return undefined;
  let database: DatabaseSync | undefined;
  try {
    if (logLosesCommits(file)) return damaged(LOST_COMMITS);
    database = openToLook(file);
    const found = database.prepare('pragma quick_check(1)').get() as { readonly quick_check: string } | undefined;
    if (found?.quick_check !== 'ok') return damaged(found?.quick_check.replaceAll('\n', ' '));
    const opened = database;
    requireKnownSchema((sql) => opened.prepare(sql).all());
    return undefined;
  } catch (error) {
    const fault = storeErrorOf(error);
    if (fault instanceof StoreError) return fault;
    throw fault;
  } finally {
    database?.close();
  }
}

/**
 * Refuses a database to which a newer version has added what this one does not know: it would write rows that the newer one cannot trust.
 * @throws StoreError `schema_newer`
 */
export function requireKnownSchema(all: (sql: string) => readonly unknown[]): void {
  if (all("select 1 from sqlite_master where type = 'table' and name = 'mikro_orm_migrations'").length === 0) return;
  const known = new Set(MIGRATIONS.map(({ name }) => name));
  const applied = all('select name from mikro_orm_migrations order by id') as readonly { readonly name: string }[];
  const unknown = applied.filter(({ name }) => !known.has(name)).map(({ name }) => name);
  if (unknown.length === 0) return;
  throw new StoreError(
    'schema_newer',
    `The database was written by a newer version (migration ${unknown.join(', ')}); nothing was changed`,
    {
      hint: 'run the newer version, or name another state directory with --state DIR',
    },
  );
}

/** A reader of a database in WAL mode makes its two side files; where there is no log nobody is writing, and the file can be read without them. */
function openToLook(file: string): DatabaseSync {
  if (existsSync(`${file}-wal`)) return new DatabaseSync(file, { readOnly: true });
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  return new DatabaseSync(url, { readOnly: true });
}
