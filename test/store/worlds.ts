import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MemoryState } from '../../adapters/store/memory/state.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import type { IdKind } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';

/** A store that can be closed and opened again over what it kept, and whose kept checkpoints can be damaged behind its back. */
export interface StoreWorld {
  readonly store: Store;
  /** Closes `store` and opens what it left, as a new kernel would. */
  reopen(): Promise<Store>;
  /** Changes the stored body of the run's newest checkpoint and nothing else. */
  damageCheckpoint(run: string, damage: (body: Buffer) => Buffer): void;
  dispose(): Promise<void>;
}

export type MakeWorld = (options?: { newId?: (kind: IdKind, nowMs: number) => string }) => Promise<StoreWorld>;

export const memoryWorld: MakeWorld = async (options = {}) => {
  const state = new MemoryState();
  const opened = [createMemoryStore({ ...options, state })];
  return {
    store: opened[0] as Store,
    async reopen() {
      await opened.at(-1)?.close();
      opened.push(createMemoryStore({ ...options, state }));
      return opened.at(-1) as Store;
    },
    damageCheckpoint(run, damage) {
      const newest = state.checkpoints.findLast((one) => one.run === run);
      state.checkpoints = state.checkpoints.map((one) =>
        one === newest ? { ...one, body: damage(Buffer.from(one.body)).toString() } : one,
      );
    },
    async dispose() {
      await opened.at(-1)?.close();
    },
  };
};

export const sqliteWorld: MakeWorld = async (options = {}) => {
  const dir = mkdtempSync(join(tmpdir(), 'outwork-store-'));
  const file = join(dir, 'store.db');
  const first = await openSqliteStore({ file, ...options });
  let store: Store = first;
  return {
    store: first,
    async reopen() {
      await store.close();
      store = await openSqliteStore({ file, ...options });
      return store;
    },
    damageCheckpoint(run, damage) {
      const raw = new DatabaseSync(file, { timeout: 1000 });
      try {
        const where = 'where run = ?1 and position = (select max(position) from checkpoints where run = ?1)';
        const row = raw.prepare(`select cast(body as blob) as body from checkpoints ${where}`).get(run) as { body: Uint8Array };
        raw.prepare(`update checkpoints set body = cast(?2 as text) ${where}`).run(run, damage(Buffer.from(row.body)));
      } finally {
        raw.close();
      }
    },
    async dispose() {
      await store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** Every store of this project: a new one is added here and has all suites at once. */
export const WORLDS: Readonly<Record<string, MakeWorld>> = { memory: memoryWorld, sqlite: sqliteWorld };
