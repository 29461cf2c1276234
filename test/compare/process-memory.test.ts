import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { descendants, uniqueMemory } from '../../adapters/compare/process-memory.ts';

const MiB = 1024 * 1024;

/** A process that holds so many bytes of its own and says when it does. */
async function holder(bytes: number) {
  const child = spawn(process.execPath, [
    '-e',
    `const held = Buffer.alloc(${bytes}, 1); console.log('ready'); setInterval(() => held.length, 1000)`,
  ]);
  await once(child.stdout, 'data');
  return child;
}

test('unique memory grows by what a process writes, and is undefined for one that is gone', async () => {
  const [small, large] = await Promise.all([holder(1), holder(64 * MiB)]);
  const grown = ((await uniqueMemory(large.pid ?? 0)) ?? 0) - ((await uniqueMemory(small.pid ?? 0)) ?? 0);
  expect(grown / MiB).toBeGreaterThan(60);
  expect(grown / MiB).toBeLessThan(70);
  const ended = [small, large].map((child) => once(child, 'exit'));
  for (const child of [small, large]) child.kill('SIGKILL');
  await Promise.all(ended);
  expect(await uniqueMemory(large.pid ?? 0)).toBeUndefined();
});

test('descendants are children and their children, whatever they are called', async () => {
  const child = spawn('sh', ['-c', 'sleep 60 & echo ready; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  const found = await descendants(process.pid);
  expect(found[0]).toBe(child.pid);
  const inner = await descendants(child.pid ?? 0);
  expect(inner).toHaveLength(1);
  expect(found).toContain(inner[0]);
  const ended = once(child, 'exit');
  for (const pid of [...inner, child.pid ?? 0]) process.kill(pid, 'SIGKILL');
  await ended;
});
