import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { HELD_BY } from '../../adapters/store/mikro-orm/fence.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';

const SOURCES = new URL('../../adapters/store/mikro-orm/', import.meta.url);

/** The statements as their files say them: `const NAME = <sql literal>`. */
function statements(): readonly { readonly name: string; readonly sql: string }[] {
  const found = [];
  for (const file of readdirSync(SOURCES).filter((name) => name.endsWith('.ts'))) {
    const text = readFileSync(new URL(file, SOURCES), 'utf8');
    for (const [, name, ...quoted] of text.matchAll(/const ([A-Z_]+) =\s*(?:`([^`]*)`|"([^"]*)"|'([^'\n]*)')/g)) {
      const sql = quoted.find((one) => one !== undefined)?.replaceAll(`\${HELD_BY}`, HELD_BY) ?? '';
      if (/^\s*(select|insert|update|delete)\b/.test(sql)) found.push({ name: `${file} ${name}`, sql });
    }
  }
  return found;
}

/** Steps that read a whole table. (A look for children of a new parent row is planned, and only made when a constraint is broken.) */
function scans(database: DatabaseSync, sql: string): readonly string[] {
  const places = Math.max(0, ...[...sql.matchAll(/\?(\d*)/g)].map(([, number], at) => (number === '' ? at + 1 : Number(number))));
  const steps = database.prepare(`explain query plan ${sql}`).all(...Array(places).fill(1)) as unknown as { detail: string }[];
  const whole = steps
    .map(({ detail }) => detail)
    .filter((detail) => /^SCAN (?!CONSTANT)/.test(detail) && !/(?:USING .*|VIRTUAL TABLE )INDEX/.test(detail));
  return sql.includes('insert into threads') ? whole.filter((detail) => detail !== 'SCAN deliveries') : whole;
}

test('no statement of a write reads a whole table, however old the file is', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'outwork-plans-'));
  const file = join(dir, 'store.db');
  await (await openSqliteStore({ file })).close();
  const database = new DatabaseSync(file);
  const all = statements();
  expect(all.length).toBeGreaterThan(25);
  for (const { name, sql } of all) expect(scans(database, sql), name).toEqual([]);
  // Control: without its index the claim would.
  database.exec('drop index runs_queued; drop index runs_position_unique');
  expect(all.filter(({ sql }) => scans(database, sql).length > 0).map(({ name }) => name)).toContain('claim-run.ts CLAIM');
  database.close();
  rmSync(dir, { recursive: true, force: true });
});
