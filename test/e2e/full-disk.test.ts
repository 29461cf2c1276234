import { describe, expect, it } from 'vitest';
import type { SqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, type E2eOptions, e2e, scenario } from '../support/e2e.ts';
import { type FullDisk, fullDisk } from '../support/full-disk.ts';

const LEASE_MS = 1000;
const HEARTBEAT_MS = 200;

/** A kernel over a disk that the test fills, and what it said that no run could carry. */
async function withDisk(options: E2eOptions) {
  const said: unknown[] = [];
  let disk: FullDisk<SqliteStore> | undefined;
  const world = await e2e({
    ...options,
    capacity: { leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS },
    kernel: {
      onError: (error) => said.push(error),
      store(store) {
        disk = fullDisk(store);
        return disk.store;
      },
    },
  });
  return { world, said, disk: disk as FullDisk<SqliteStore> };
}

/** Resolves when each of these writes was refused so often. */
function refused(disk: FullDisk<SqliteStore>, wanted: Readonly<Record<string, number>>): Promise<void> {
  const left = new Map(Object.entries(wanted));
  return new Promise((resolve) => {
    disk.onWrite = (method) => {
      if (!disk.full) return;
      left.set(method, (left.get(method) ?? 0) - 1);
      if ([...left.values()].every((times) => times <= 0)) resolve();
    };
  });
}

describe.each(PLACEMENTS)('BL-108 the disk fills and has room again, under %s', (placement) => {
  it('what had begun comes to its end and is kept, once; the lease is held; the kernel says what is wrong', async () => {
    const count = ['sh', '-c', 'echo x >>count; sleep 2; wc -l <count'];
    const { world, disk, said } = await withDisk({ placement, scenario: scenario('count', [count]), users: ['ada', 'bo'] });
    await using _ = world;
    const run = await world.post('go');
    const other = await world.post('go', { user: 'bo' });
    for (const id of [run, other])
      await world.event(id, ({ type, data }) => type === 'call.dispatched' && data.capability === 'shell.exec');
    // Longer than the lease of either run.
    const over = refused(disk, { 'runs.heartbeat': (2 * (2 * LEASE_MS)) / HEARTBEAT_MS, 'calls.close': 4 });
    disk.full = true;
    await over;
    expect(await world.kernel.readiness()).toMatchObject({ store: expect.stringContaining('disk is full') });
    await expect(world.kernel.post({ tenant: 'default', user: 'ada', body: 'more' })).rejects.toMatchObject({ code: 'disk_full' });
    expect((await world.kernel.showRun(run)).run.state).toBe('running');
    disk.full = false;
    for (const id of [run, other]) {
      const view = await world.until(id);
      expect(view.run).toMatchObject({ state: 'completed', fence: 1, reclaims: 0 });
      expect(commandsOf(view)).toMatchObject([{ exitCode: 0, stdout: '1\n' }]);
    }
    expect(said).toContainEqual(expect.objectContaining({ code: 'disk_full' }));
  });

  it('a command that cannot be written down does not start; the run goes on when there is room, and completes', async () => {
    const { world, disk } = await withDisk({ placement, scenario: scenario('count', [['sh', '-c', 'echo x >>count; wc -l <count']]) });
    await using _ = world;
    const refusedOnce = Promise.withResolvers<void>();
    disk.onWrite = (method, given) => {
      const { capability } = (given[1] ?? {}) as { capability?: string };
      if (method === 'calls.open' && capability === 'shell.exec') disk.full = true;
      if (method === 'runs.settle') refusedOnce.resolve();
    };
    const run = await world.post('go');
    await refusedOnce.promise;
    expect((await world.kernel.showRun(run)).calls.map(({ capability }) => capability)).not.toContain('shell.exec');
    disk.onWrite = () => {};
    disk.full = false;
    const view = await world.until(run);
    expect(view.run).toMatchObject({ state: 'completed', fence: 2, reclaims: 1 });
    expect(commandsOf(view)).toMatchObject([{ exitCode: 0, stdout: '1\n' }]);
  });
});
