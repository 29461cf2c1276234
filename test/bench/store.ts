import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quantile, rounded } from '../../adapters/compare/quantile.ts';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { addUser, close, event, open, post, refOf, settle } from '../store/scene.ts';
import type { Figure } from './figure.ts';

const SAMPLES = 400;
const WARM_UP = 50;

/**
 * What durability costs: a bare 4 KiB write with fdatasync, a commit of one event, a claim, and the open and close of one call (two
 * commits), taken in turns so that all see the same disk. The directory must lie on the disk that states lie on.
 */
export async function benchStore(directory: string = tmpdir()): Promise<Figure[]> {
  const dir = mkdtempSync(join(directory, 'outwork-bench-'));
  const bare = bareWrite(join(dir, 'bare'));
  const store = await openSqliteStore({ file: join(dir, 'store.db') });
  const took = { bare: [] as number[], commit: [] as number[], claim: [] as number[], call: [] as number[] };
  try {
    await addUser(store, 'ada');
    for (let turn = 0; turn < WARM_UP + SAMPLES; turn += 1) {
      const sampled = async (into: number[], work: () => unknown) => {
        const before = performance.now();
        await work();
        if (turn >= WARM_UP) into.push(performance.now() - before);
      };
      await sampled(took.bare, bare.write);
      await sampled(took.commit, () => store.events.append(event('run.progress'), turn));
      const { run } = await post(store);
      await sampled(took.claim, () => store.runs.claim({ holder: 'bench', nowMs: turn, leaseMs: 1000, deadlineMs: 1e12, perUser: 1 }));
      const ref = refOf({ id: run.id, fence: 1 });
      await sampled(took.call, async () => {
        await open(store, ref, { permit: `permit-${turn}`, nowMs: turn });
        await close(store, ref, `permit-${turn}`, { nowMs: turn });
      });
      await settle(store, ref, 'completed');
    }
  } finally {
    bare.close();
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
  return [
    figure('store.callOpenCloseP50Ms', 0.5, 2, took.call, took.bare),
    figure('store.callOpenCloseP99Ms', 0.99, 15, took.call, took.bare),
    figure('store.claimP50Ms', 0.5, 2, took.claim, took.bare),
    figure('store.commitP50Ms', 0.5, 1, took.commit, took.bare),
  ];
}

function figure(id: string, q: number, boundMs: number, took: readonly number[], bare: readonly number[]): Figure {
  const measured = quantile(took, q) ?? Number.NaN;
  const baseline = quantile(bare, q) ?? Number.NaN;
  return {
    id,
    target: `≤ ${boundMs} ms`,
    measured: rounded(measured),
    baseline: rounded(baseline),
    ratio: rounded(measured / baseline),
    met: measured <= boundMs,
  };
}

/** Appends 4 KiB and makes it durable: the least that any durable write can cost on this disk. */
function bareWrite(file: string): { write(): void; close(): void } {
  const fd = openSync(file, 'a');
  const block = Buffer.alloc(4096, 1);
  return {
    write() {
      writeSync(fd, block);
      fdatasyncSync(fd);
    },
    close: () => closeSync(fd),
  };
}
