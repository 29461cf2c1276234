import { cpSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { databaseFault } from '../../adapters/store/mikro-orm/database-health.ts';
import { logLosesCommits } from '../../adapters/store/mikro-orm/log-health.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';

const PAGE = 4096;
const FRAME = 24 + PAGE;
let dir: string;
let file: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-log-'));
  file = join(dir, 'outwork.db');
});
afterEach(() => rmSync(dir, { recursive: true }));

/** What a killed process leaves of a database with so many acknowledged commits since the log began. */
function killedAfter(commits: number, rounds = 1): void {
  const living = join(dir, 'living.db');
  const database = new DatabaseSync(living);
  database.exec(`pragma page_size = ${PAGE}; pragma journal_mode = wal; pragma synchronous = full; create table t (x)`);
  for (let round = 0; round < rounds; round += 1) {
    database.exec('pragma wal_checkpoint(restart)');
    const last = rounds > 1 && round === rounds - 1;
    for (let i = 0; i < (last ? 3 : commits); i += 1) database.exec(`insert into t values (${i})`);
  }
  for (const end of ['', '-wal']) cpSync(`${living}${end}`, `${file}${end}`);
  database.close();
}

const framesOf = () => Math.floor((readFileSync(`${file}-wal`).length - 32) / FRAME);
const spoil = (at: number) => writeSync(openSync(`${file}-wal`, 'r+'), Buffer.alloc(16, 0xee), 0, 16, at);

describe('the write-ahead log of a database that was not closed', () => {
  test.each([
    ['in its header', () => spoil(8)],
    ['in its first frame', () => spoil(32 + 100)],
    ['in the middle', () => spoil(32 + 5 * FRAME + 100)],
    ['in the salt of a frame', () => spoil(32 + 5 * FRAME + 8)],
  ])('that is damaged %s would lose commits, and the store is not opened', async (_, damage) => {
    killedAfter(12);
    damage();
    expect(logLosesCommits(file)).toBe(true);
    expect(databaseFault(file)).toMatchObject({ code: 'store_damaged', message: expect.stringContaining('lost') });
    const before = readFileSync(`${file}-wal`);
    await expect(openSqliteStore({ file })).rejects.toMatchObject({ code: 'store_damaged', hint: expect.stringContaining('copy') });
    expect(readFileSync(`${file}-wal`).equals(before)).toBe(true);
  });

  test.each([
    ['whole', () => {}],
    ['torn in its last transaction', () => spoil(32 + (framesOf() - 1) * FRAME + 100)],
    ['cut within a frame', () => truncateSync(`${file}-wal`, 32 + 5 * FRAME + 13)],
    ['empty', () => truncateSync(`${file}-wal`, 0)],
    ['never synced', () => writeFileSync(`${file}-wal`, Buffer.alloc(3 * FRAME))],
    ['missing', () => rmSync(`${file}-wal`)],
  ])('control: that is %s is what a crash may leave', (_, leave) => {
    killedAfter(12);
    leave();
    expect(logLosesCommits(file)).toBe(false);
  });

  test('control: one that was begun anew over a longer one is whole', () => {
    killedAfter(12, 3);
    expect(framesOf()).toBeGreaterThan(10);
    expect(logLosesCommits(file)).toBe(false);
  });
});
