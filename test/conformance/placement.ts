import { describe, expect, it } from 'vitest';
import type { PlacementName } from '../../core/run/types.ts';
import { guestPid, processWith, scenario, uniqueSeconds } from '../support/e2e.ts';
import type { PlacementWorld } from '../support/placement-world.ts';

/** What `release` of a healthy seat leaves (P3). */
export interface PlacementClaims {
  readonly name: PlacementName;
  readonly keepsSandbox: boolean;
}

/**
 * Clauses P1 to P4 of the placement port and X1 to X3 of its executors, over one adapter.
 *
 * @param open - a world whose model follows the scenario
 */
export function placementConformance({ name, keepsSandbox }: PlacementClaims, open: (scenario: string) => Promise<PlacementWorld>): void {
  describe(`placement ${name}`, () => {
    it('P1 X1 a seat is ready to take its run, and the executor works through membrane operations only', async () => {
      await using world = await open('hello');
      const run = await world.claim();
      const seat = await world.placement.seat(run, 'scripted');
      expect(await world.execute(run, seat)).toEqual({ kind: 'exited', claim: { kind: 'completed' } });
      const capabilities = (await world.store.calls.list(run.id)).map((row) => row.capability);
      expect(capabilities).toEqual(['checkpoint.save', 'model.generate', 'message.post']);
      await seat.release(true);
    });

    it('P2 a seat belongs to the run’s own actor: another user sees neither its files nor its sandbox', async () => {
      await using world = await open('hello');
      const never = new AbortController().signal;
      const [ada, bo] = [await world.claim('ada'), await world.claim('bo')];
      const [first, second] = [await world.placement.seat(ada, 'scripted'), await world.placement.seat(bo, 'scripted')];
      expect(first.sandbox).not.toBe(second.sandbox);
      await first.tools.file({ op: 'write', path: 'mine', body: 'x', encoding: 'utf8' }, never);
      expect(await second.tools.file({ op: 'list', path: '.', maxEntries: 10 }, never)).toMatchObject({ entries: [] });
      expect(await first.tools.file({ op: 'list', path: '.', maxEntries: 10 }, never)).toMatchObject({ entries: [{ name: 'mine' }] });
      await first.release(true);
      await second.release(true);
    });

    it('P3 a healthy release leaves exactly what the placement promises, a broken one nothing; the workspace stays', async () => {
      await using world = await open('hello');
      const never = new AbortController().signal;
      const run = await world.claim();
      const seat = await world.placement.seat(run, 'scripted');
      await seat.tools.file({ op: 'write', path: 'kept', body: 'x', encoding: 'utf8' }, never);
      await seat.release(true);
      expect(world.sandboxes.running()).toHaveLength(keepsSandbox ? 1 : 0);
      const again = await world.placement.seat(run, 'scripted');
      expect(again.cold).toBe(!keepsSandbox);
      expect(await again.tools.file({ op: 'read', path: 'kept', maxBytes: 10 }, never)).toMatchObject({ body: 'x' });
      await again.release(false);
      expect(world.sandboxes.running()).toEqual([]);
    });

    it('P4 when recycle resolves, nothing of the owner’s sandbox is alive', async () => {
      const seconds = uniqueSeconds(600);
      await using world = await open('hello');
      const run = await world.claim();
      const seat = await world.placement.seat(run, 'scripted');
      const command = { argv: ['sleep', seconds], timeoutMs: 60_000, outputBytes: 4096, background: true };
      await seat.tools.exec(command, new AbortController().signal);
      const pid = await processWith(seconds);
      await world.placement.recycle({ id: run.id, tenant: run.tenant, user: run.actor });
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    });

    it('X2 an executor that is killed is lost, and the promise does not reject', async () => {
      const seconds = uniqueSeconds(600);
      await using world = await open(scenario('slow', [['sleep', seconds]]));
      const run = await world.claim();
      const seat = await world.placement.seat(run, 'scripted');
      const outcome = world.execute(run, seat);
      await processWith(seconds);
      process.kill(guestPid(seat.sandbox), 'SIGKILL');
      expect(await outcome).toMatchObject({ kind: 'lost' });
      await seat.release(false);
    });

    it('X3 an aborted executor ends, and its command with it', async () => {
      const seconds = uniqueSeconds(600);
      await using world = await open(scenario('slow', [['sleep', seconds]]));
      const run = await world.claim();
      const seat = await world.placement.seat(run, 'scripted');
      const abort = new AbortController();
      const outcome = world.execute(run, seat, abort.signal);
      const pid = await processWith(seconds);
      abort.abort();
      expect(['exited', 'lost']).toContain((await outcome).kind);
      await seat.release(false);
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    });
  });
}
