import { expect, it } from 'vitest';
import { sandboxHandle } from '../../adapters/sandbox/bubblewrap/handle.ts';
import { systemClock } from '../../core/seams/clock.ts';

/** No process has this start: it has ended. */
const GONE = { pid: 1, startTicks: 'gone' };

const handleOf = (forget: () => Promise<void>, left: unknown[]) =>
  sandboxHandle({
    generation: 'sbx_1',
    launched: { monitor: GONE, init: GONE, exited: Promise.resolve({ code: 137, signal: null }), output: () => '' },
    group: { dirs: [], add: async () => {}, oomKills: () => 0, refusedProcesses: () => 0 },
    clock: systemClock,
    forget,
    onLeft: (error) => left.push(error),
  });

it('N4 a sandbox has ended when its processes have, though something it leaves cannot be removed; that is told', async () => {
  const left: unknown[] = [];
  const busy = new Error('EBUSY');
  const handle = handleOf(() => Promise.reject(busy), left);
  expect(await handle.ended).toEqual({ reason: 'guest ended (exit 137)' });
  await handle.stop();
  expect(left).toEqual([busy]);
});

it('control: what is removed is not told of', async () => {
  const left: unknown[] = [];
  await handleOf(() => Promise.resolve(), left).ended;
  expect(left).toEqual([]);
});
