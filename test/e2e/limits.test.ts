import { describe, expect, it } from 'vitest';
import type { KernelEvent } from '../../core/events.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';
import { commandsOf, type E2e, e2e, scenario } from '../support/e2e.ts';

async function eventOf(world: E2e, fits: (event: KernelEvent) => boolean): Promise<KernelEvent> {
  for (let cursor = 0; ; ) {
    const events = await world.kernel.events(cursor, {}, 1000);
    const found = events.find(fits);
    if (found !== undefined) return found;
    cursor = events.at(-1)?.cursor ?? cursor;
    await world.kernel.eventsChanged(cursor, 1000);
  }
}

const limits = { ...SANDBOX_LIMITS, diskMiB: 16, pids: 64 };

describe('limits in a whole kernel', () => {
  it('BL-108 T18 a user who fills the disk loses the sandbox as `disk_full`, can clean up in the next run, and no other user is touched', async () => {
    const fill = 'head -c 40000000 /dev/zero >big; exec sleep 600';
    await using world = await e2e({ users: ['ada', 'bob'], config: { limits }, scenario: scenario('quiet', [['true']]) });
    const bob = (await world.turn('start', { user: 'bob' })).attempts[0]?.sandbox;
    await world.switchScenario(scenario('fill', [['sh', '-c', fill]]));
    const run = await world.post('fill it', { user: 'ada' });
    const stopped = await eventOf(world, ({ type, data }) => type === 'sandbox.stopped' && data.user === 'ada');
    expect(stopped.data).toMatchObject({ code: 'disk_full', reason: expect.stringMatching(/^disk_full: /) });
    // A command whose end nobody knows: the run asks, and is given up here.
    expect((await world.until(run)).run.state).toBe('parked');
    await world.kernel.resolveRun(run, 'abort');
    await world.until(run, ['failed']);

    await world.switchScenario(scenario('clean', [['sh', '-c', '(echo x) >>note; stat -c %s note; rm big && ls']]));
    expect(commandsOf(await world.turn('clean up', { user: 'ada' })).at(-1)?.stdout).toBe('0\nnote\n');
    const after = await world.turn('go on', { user: 'bob' });
    expect(after.run.state).toBe('completed');
    expect(after.attempts[0]?.sandbox).toBe(bob);
  });

  it('BL-083 T17 a command that can make no process is told so, and the turn goes on', async () => {
    const bomb =
      'for (1 .. 200) { my $p = fork; last unless defined $p; if (!$p) { sleep 600; exit } $n++ } print $n < 200 ? "refused" : "made"';
    await using world = await e2e({
      config: { limits },
      scenario: scenario('bomb', [
        ['perl', '-e', bomb],
        ['echo', 'after'],
      ]),
    });
    const view = await world.turn('go');
    expect(view.run.state).toBe('completed');
    expect(commandsOf(view)).toMatchObject([{ stdout: 'refused' }, { stdout: 'after\n' }]);
  });
});
