import { expect, it } from 'vitest';
import { followRun } from '../../adapters/cli/follow-run.ts';
import { loadConfig } from '../../adapters/config.ts';
import { createMemoryKernel } from '../support/memory-kernel.ts';

const open = async (body: string) => {
  const kernel = createMemoryKernel(loadConfig({ env: { HOME: '/nonexistent' }, cwd: '/nonexistent' }));
  await kernel.addUser({ tenant: 'default', name: 'ann', roles: ['user'] });
  const { run } = await kernel.post({ tenant: 'default', user: 'ann', body });
  return { kernel, run };
};

it('does not wait for another event when the run ended between the look at its state and the look at the log', async () => {
  const { kernel, run } = await open('hi');
  const { showRun } = kernel;
  kernel.showRun = async (id) => {
    const view = await showRun(id);
    if (view.run.state === 'queued') await kernel.start();
    return view;
  };
  let waits = 0;
  kernel.eventsChanged = async () => {
    waits += 1;
  };
  const types: string[] = [];
  const ended = await followRun(kernel, run.id, {
    throughGates: false,
    from: 0,
    onEvent: ({ type }) => types.push(type),
    onPosition: () => {},
  });
  expect([ended.state, waits]).toEqual(['completed', 0]);
  expect(types).toEqual(['message.posted', 'run.queued', 'run.claimed', 'run.completed']);
});

it('waits at the head of the log, also when the newest events belong to others', async () => {
  const { kernel, run } = await open('hang');
  await kernel.start();
  for (let i = 0; i < 500; i += 1) await kernel.addUser({ tenant: 'default', name: `user-${i}`, roles: [] });
  const waits: number[] = [];
  kernel.eventsChanged = async (from) => {
    waits.push(from);
    await kernel.cancelRun(run.id);
  };
  const ended = await followRun(kernel, run.id, { throughGates: false, from: 0, onEvent: () => {}, onPosition: () => {} });
  const head = (await kernel.events(0, {}, 1000)).length;
  expect(ended.state).toBe('cancelled');
  expect(waits).toEqual([head - 1]);
});
