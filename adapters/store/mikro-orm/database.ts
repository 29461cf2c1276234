import { type EntityName, type FilterQuery, type FindOptions, MikroORM } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { type AbstractSqlConnection, SqliteDriver } from '@mikro-orm/sql';
import { CompiledQuery, type Kysely } from 'kysely';
import { StoreError } from '../../../core/errors.ts';
import type { IdKind } from '../../../core/ids.ts';
import { ChangeSignal } from '../change-signal.ts';
import { withFileLock } from '../file-lock.ts';
import { isStorable } from '../storable.ts';
import { ENTITIES } from './entities.ts';
import { Migration001Initial } from './migrations/001-initial.ts';
import { DurableSqliteDialect } from './sqlite-dialect.ts';
import { storeErrorOf } from './sqlite-errors.ts';

/** Values of a bound statement. Booleans are written as 0 and 1 by the caller. */
export type Bound = string | number | null | undefined;

/** Statements with bound values, inside one write transaction. */
export interface Tx {
  all<Row>(sql: string, values: readonly Bound[]): Promise<readonly Row[]>;
  get<Row>(sql: string, values: readonly Bound[]): Promise<Row | undefined>;
  /** @returns how many rows were changed. */
  run(sql: string, values: readonly Bound[]): Promise<number>;
  /** Called once the transaction is durable. */
  afterCommit(fn: () => void): void;
}

export type NewId = (kind: IdKind, nowMs: number) => string;

/** One SQLite file: schema and reads through the ORM, writes through bound statements on the same, single connection. */
export class Database {
  readonly newId: NewId;
  /** Random name of this open store; marks what it is in the middle of (S11). */
  readonly instance: string;
  readonly changes = new ChangeSignal();
  readonly #orm: MikroORM<SqliteDriver>;
  readonly #client: Kysely<unknown>;
  #commits = 0;
  #closed = false;

  private constructor(orm: MikroORM<SqliteDriver>, options: { newId: NewId; instance: string }) {
    this.#orm = orm;
    this.#client = (orm.em.getConnection() as AbstractSqlConnection).getClient();
    this.newId = options.newId;
    this.instance = options.instance;
  }

  /** Opens or makes the file and brings its schema up to date. @throws StoreError `store_unavailable` `disk_full` */
  static async open(file: string, options: { newId: NewId; instance: string }): Promise<Database> {
    try {
      const orm = await MikroORM.init({
        driver: SqliteDriver,
        dbName: file,
        driverOptions: new DurableSqliteDialect(file),
        entities: ENTITIES,
        extensions: [Migrator],
        migrations: { migrationsList: [{ name: '001-initial', class: Migration001Initial }], snapshot: false, silent: true },
        logger: () => {},
        colors: false,
      });
      try {
        return await Database.#prepare(orm, file, options);
      } catch (error) {
        await orm.close(true);
        throw error;
      }
    } catch (error) {
      throw storeErrorOf(error);
    }
  }

  static async #prepare(orm: MikroORM<SqliteDriver>, file: string, options: { newId: NewId; instance: string }): Promise<Database> {
    // Two processes may open a new file at once: the migrator itself would let both find it empty.
    await withFileLock(`${file}.migrating`, () => orm.migrator.up());
    const db = new Database(orm, options);
    const last = await db.get<{ cursor: number | null }>('select max(cursor) as cursor from events', []);
    db.changes.advance(last?.cursor ?? 0);
    return db;
  }

  /** Transactions that changed something and are on disk, since this store was opened. */
  get commits(): number {
    return this.#commits;
  }

  /**
   * Runs `fn` as one transaction that is durable when the promise resolves; a rejection leaves nothing behind. `fn` awaits its own
   * statements and nothing else: the connection is locked meanwhile, a read through the ORM would wait for it forever.
   */
  async write<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    this.#requireOpen();
    const committed: (() => void)[] = [];
    let changed = 0;
    let result: T;
    try {
      result = await this.#client.transaction().execute((client) => {
        const tx = statements(client, (rows) => {
          changed += rows;
        });
        return fn({ ...tx, afterCommit: (done) => committed.push(done) });
      });
    } catch (error) {
      throw storeErrorOf(error);
    }
    if (changed > 0) this.#commits += 1;
    for (const done of committed) done();
    return result;
  }

  /** One bound read outside a transaction, for hot paths. */
  async get<Row>(sql: string, values: readonly Bound[]): Promise<Row | undefined> {
    this.#requireOpen();
    try {
      return await statements(this.#client).get<Row>(sql, values);
    } catch (error) {
      throw storeErrorOf(error);
    }
  }

  /** Rows of an entity. The ORM writes values into the SQL text, so text that SQLite cannot hold is answered here: it names nothing. */
  async find<Entity extends object>(
    entity: EntityName<Entity>,
    where: FilterQuery<NoInfer<Entity>>,
    options: Pick<FindOptions<Entity>, 'orderBy' | 'limit'> = {},
  ): Promise<readonly Entity[]> {
    this.#requireOpen();
    if (!isStorable(where)) return [];
    try {
      return (await this.#orm.em.fork().find(entity, where, { ...options, disableIdentityMap: true })) as readonly Entity[];
    } catch (error) {
      throw storeErrorOf(error);
    }
  }

  /** SQL that would bring the file to the schema of the entities; empty when it is there. */
  drift(): Promise<string> {
    return this.#orm.schema.getUpdateSchemaSQL();
  }

  /** Lets what has begun come to its end; what comes later is refused with `store_unavailable`. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.changes.close();
    // The connection is given out in order: once it comes here nothing is in the middle of anything.
    await this.#client.connection().execute(async () => {});
    await this.#orm.close(true);
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError('store_unavailable', 'The store is closed');
  }
}

function statements(client: Pick<Kysely<unknown>, 'executeQuery'>, onChange: (rows: number) => void = () => {}): Omit<Tx, 'afterCommit'> {
  const query = (sql: string, values: readonly Bound[]) => client.executeQuery(CompiledQuery.raw(sql, [...values]));
  const all = async <Row>(sql: string, values: readonly Bound[]) => {
    const rows = (await query(sql, values)).rows as readonly Row[];
    if (!sql.startsWith('select')) onChange(rows.length);
    return rows;
  };
  return {
    all,
    get: async <Row>(sql: string, values: readonly Bound[]) => (await all<Row>(sql, values))[0],
    run: async (sql, values) => {
      const rows = Number((await query(sql, values)).numAffectedRows ?? 0n);
      onChange(rows);
      return rows;
    },
  };
}
