import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { type DatabaseConnection, type Driver, type SqliteDatabase, SqliteDialect, SqliteDriver, type SqliteStatement } from 'kysely';

/** Prepared statements kept; beyond it the one not used for longest is dropped: the ORM's reads carry their values in the text and never hit. */
const CACHED_STATEMENTS = 128;

/** Milliseconds another process may hold the write lock before a write fails. Waiting blocks the event loop, so there should be none. */
const BUSY_TIMEOUT_MS = 5000;

const LOG_SIZE_LIMIT_BYTES = 64 * 1024 * 1024;

/**
 * `node:sqlite` for Kysely. Differs from the dialect that MikroORM ships in what durability needs: WAL with `synchronous = FULL` (a commit is
 * on disk before it returns), foreign keys, a busy timeout, write transactions that take the lock at `begin`, and a statement cache.
 */
export class DurableSqliteDialect extends SqliteDialect {
  readonly #database: CachingDatabase;

  constructor(file: string) {
    const database = new CachingDatabase(file);
    super({ database });
    this.#database = database;
  }

  override createDriver(): Driver {
    return new ImmediateDriver(this.#database);
  }

  /** A prepared statement of the one connection, for whoever holds it: inside a write transaction nothing else may run. */
  prepare(sql: string): SqliteStatement {
    return this.#database.prepare(sql);
  }
}

class ImmediateDriver extends SqliteDriver {
  readonly #database: CachingDatabase;

  constructor(database: CachingDatabase) {
    super({ database });
    this.#database = database;
  }

  // A deferred `begin` that reads first and writes later fails at once when another process wrote in between.
  override async beginTransaction(_connection: DatabaseConnection): Promise<void> {
    this.#database.exec('begin immediate');
  }

  override async commitTransaction(_connection: DatabaseConnection): Promise<void> {
    this.#database.exec('commit');
  }

  // SQLite itself rolls back on some errors (disk full, I/O); a second rollback would hide the first error.
  override async rollbackTransaction(_connection: DatabaseConnection): Promise<void> {
    if (this.#database.inTransaction) this.#database.exec('rollback');
  }
}

class CachingDatabase implements SqliteDatabase {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    try {
      this.#configure();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  #configure(): void {
    this.exec('pragma journal_mode = wal');
    this.exec('pragma synchronous = full');
    this.exec('pragma foreign_keys = on');
    // What a long reader made of the log is given back at the next checkpoint.
    this.exec(`pragma journal_size_limit = ${LOG_SIZE_LIMIT_BYTES}`);
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    const statement = known ?? adapt(this.#database.prepare(sql));
    if (known !== undefined) this.#statements.delete(sql);
    else if (this.#statements.size >= CACHED_STATEMENTS) this.#statements.delete(this.#statements.keys().next().value as string);
    this.#statements.set(sql, statement);
    return statement;
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }
}

function adapt(statement: StatementSync): SqliteStatement {
  const bind = (parameters: readonly unknown[]) => parameters.map((value) => (value === undefined ? null : value)) as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...bind(parameters)),
    run: (parameters) => statement.run(...bind(parameters)),
    iterate: (parameters) => statement.iterate(...bind(parameters)),
  };
}
