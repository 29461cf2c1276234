import { type EntityName, type FilterQuery, type FindOptions, MikroORM } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { type AbstractSqlConnection, SqliteDriver } from '@mikro-orm/sql';
import { CompiledQuery, type Kysely } from 'kysely';
import { StoreError } from '../../../core/errors.ts';
import type { IdKind } from '../../../core/ids.ts';
import { ChangeSignal } from '../change-signal.ts';
import { withFileLock } from '../file-lock.ts';
import { isStorable } from '../storable.ts';
import { requireKnownSchema } from './database-health.ts';
import { ENTITIES } from './entities.ts';
import { LOST_COMMITS, logLosesCommits } from './log-health.ts';
import { MIGRATIONS } from './migrations/list.ts';
import { DurableSqliteDialect } from './sqlite-dialect.ts';
import { damaged, storeErrorOf } from './sqlite-errors.ts';

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
  readonly #dialect: DurableSqliteDialect;
  #commits = 0;
  #closed = false;

  private constructor(orm: MikroORM<SqliteDriver>, dialect: DurableSqliteDialect, options: { newId: NewId; instance: string }) {
    this.#orm = orm;
    this.#dialect = dialect;
    this.#client = (orm.em.getConnection() as AbstractSqlConnection).getClient();
    this.newId = options.newId;
    this.instance = options.instance;
  }

  /** Opens or makes the file and brings its schema up to date. @throws StoreError `store_damaged` `schema_newer` `store_unavailable` `disk_full` */
  static async open(file: string, options: { newId: NewId; instance: string }): Promise<Database> {
    try {
      // Opening would throw the rest of the log away.
      if (logLosesCommits(file)) throw damaged(LOST_COMMITS);
      const dialect = new DurableSqliteDialect(file);
      const orm = await MikroORM.init({
        driver: SqliteDriver,
        dbName: file,
        driverOptions: dialect,
        entities: ENTITIES,
        extensions: [Migrator],
        migrations: { migrationsList: MIGRATIONS, snapshot: false, silent: true },
        logger: () => {},
        colors: false,
      });
      try {
        return await Database.#prepare(orm, dialect, file, options);
      } catch (error) {
        await orm.close(true);
        throw error;
      }
    } catch (error) {
      throw storeErrorOf(error);
    }
  }

  static async #prepare(
    orm: MikroORM<SqliteDriver>,
    dialect: DurableSqliteDialect,
    file: string,
    options: { newId: NewId; instance: string },
  ): Promise<Database> {
    requireKnownSchema((sql) => dialect.prepare(sql).all([]));
    // Two processes may open a new file at once: the migrator itself would let both find it empty.
    await withFileLock(`${file}.migrating`, () => orm.migrator.up());
    const db = new Database(orm, dialect, options);
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
      result = await this.#client.transaction().execute(() => {
        const tx = held(this.#dialect, (rows) => {
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
      return (await this.#read<Row>(sql, values))[0];
    } catch (error) {
      throw storeErrorOf(error);
    }
  }

  /** Bound reads of several rows; for hot paths, where the ORM's hydration costs more than the query. */
  async all<Row>(sql: string, values: readonly Bound[]): Promise<readonly Row[]> {
    this.#requireOpen();
    try {
      return await this.#read<Row>(sql, values);
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

  /** Waits for its turn on the connection: what a transaction has not committed is never seen. */
  async #read<Row>(sql: string, values: readonly Bound[]): Promise<readonly Row[]> {
    return (await this.#client.executeQuery(CompiledQuery.raw(sql, [...values]))).rows as readonly Row[];
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError('store_unavailable', 'The store is closed');
  }
}

/**
 * Statements of the transaction that holds the connection, straight to SQLite: through the query builder each costs some 40 µs more,
 * and a call of an executor makes about eight.
 */
function held(dialect: DurableSqliteDialect, onChange: (rows: number) => void): Omit<Tx, 'afterCommit'> {
  const all = async <Row>(sql: string, values: readonly Bound[]) => {
    const rows = dialect.prepare(sql).all(values) as readonly Row[];
    if (!sql.startsWith('select')) onChange(rows.length);
    return rows;
  };
  return {
    all,
    get: async <Row>(sql: string, values: readonly Bound[]) => (await all<Row>(sql, values))[0],
    run: async (sql, values) => {
      const rows = Number(dialect.prepare(sql).run(values).changes);
      onChange(rows);
      return rows;
    },
  };
}
