import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CAPACITY } from '../../core/limits.ts';
import { type E2e, e2e } from '../support/e2e.ts';
import { type HostileGuest, hostileGuest } from '../support/hostile-guest.ts';

let guest: HostileGuest;
beforeAll(async () => {
  guest = await hostileGuest('thief');
});
afterAll(() => guest[Symbol.dispose]());

/** What the agent of a thread has said last. */
const lastSaid = async (world: E2e, thread: string) => {
  const { messages } = await world.kernel.showThread('default', thread);
  return JSON.parse(messages.filter(({ author }) => author === 'agent').at(-1)?.body ?? '{}');
};

const REFUSED = { error: { code: 'unauthenticated' } };
const ALL_REFUSED = { 'context.get': REFUSED, 'checkpoint.get': REFUSED, exit: REFUSED, call: REFUSED };

describe.each(['disposable-per-run', 'persistent-per-user'] as const)('a stolen run token under %s', (placement) => {
  const open = (users: readonly string[]) => e2e({ placement, users, kernel: { guest } });

  it('T19 executor: a living token is worth nothing on another sandbox’s socket; on its own it works', async () => {
    await using world = await open(['ada', 'bob']);
    const hanging = await world.post(JSON.stringify({ do: 'tell-and-hang' }), { user: 'ada' });
    await world.event(hanging, (event) => event.type === 'call.completed' && event.data.capability === 'message.post');
    const { run } = await world.kernel.showRun(hanging);
    const { token } = await lastSaid(world, run.thread);
    expect(token).toMatch(/^eyJ/);

    const thief = await world.turn(JSON.stringify({ do: 'use', token }), { user: 'bob' });
    const said = await lastSaid(world, thief.run.thread);
    expect(said.attempts).toMatchObject(ALL_REFUSED);
    // Control: the same operation with the thief's own token is answered, and the victim's run is as it was.
    expect(said.own).toEqual({ checkpoint: null });
    expect((await world.kernel.showRun(hanging)).run.state).toBe('running');
    await world.kernel.cancelRun(hanging);
    await world.until(hanging);
  });

  it('T19 executor: the token of an earlier attempt is worth nothing under the next one’s fence', async () => {
    await using world = await open(['ada']);
    const view = await world.turn(JSON.stringify({ do: 'keep-and-die' }));
    expect(view.run).toMatchObject({ state: 'completed', fence: 2 });
    const said = await lastSaid(world, view.run.thread);
    expect(said.attempts).toMatchObject(ALL_REFUSED);
    expect(said.own).toEqual({ checkpoint: null });
  });

  it('T19 executor: the token of a run that has ended is worth nothing in the same user’s next one', async () => {
    await using world = await open(['ada']);
    const first = await world.turn(JSON.stringify({ do: 'tell' }));
    const { token } = await lastSaid(world, first.run.thread);
    const second = await world.turn(JSON.stringify({ do: 'use', token }));
    expect((await lastSaid(world, second.run.thread)).attempts).toMatchObject(ALL_REFUSED);
  });

  it('T19 executor: a token is worth nothing after its run’s deadline', async () => {
    const capacity = { ...CAPACITY, policyPollMs: 50, runDeadlineMs: 2000 };
    await using world = await e2e({ placement, kernel: { guest }, config: { capacity } });
    const late = await world.turn(JSON.stringify({ do: 'outlive' }));
    expect(late.run.state).toBe('failed');
    const report = await world.turn(JSON.stringify({ do: 'report' }));
    expect((await lastSaid(world, report.run.thread)).attempts).toMatchObject(ALL_REFUSED);
  });
});
