import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate as immediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  findProcess,
  isAlive,
  killProcess,
  type ProcessRef,
  processTree,
  uniqueMemoryBytes,
  untilGone,
} from '../../adapters/sandbox/bubblewrap/processes.ts';
import { systemClock } from '../../core/seams/clock.ts';

const NOBODY = 4_194_305; // above the largest pid

describe('processes seen from outside', () => {
  it('a process is named by pid and start; the same number with another start is another process', async () => {
    const self = (await findProcess(process.pid)) as ProcessRef;
    expect(await isAlive(self)).toBe(true);
    const other = { ...self, startTicks: '1' };
    expect(await isAlive(other)).toBe(false);
    expect(await killProcess(other)).toBe(false);
    expect(await findProcess(NOBODY)).toBeUndefined();
  });

  it('kills exactly the named process and waits until it is gone', async () => {
    const child = spawn('sleep', ['1000']);
    const ref = (await findProcess(child.pid as number)) as ProcessRef;
    const exited = once(child, 'exit');
    expect(await killProcess(ref)).toBe(true);
    await untilGone(ref, systemClock);
    expect(await exited).toEqual([null, 'SIGKILL']);
    expect(await killProcess(ref)).toBe(false);
  });

  it('a process whose main thread has ended is alive, and is ended', async () => {
    const script = `
import ctypes, os, threading, time
threading.Thread(target=lambda: time.sleep(600)).start()
print('ready', flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)
`;
    const child = spawn('python3', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const ref = (await findProcess(child.pid as number)) as ProcessRef;
    while (!/^State:\tZ/m.test(readFileSync(`/proc/${ref.pid}/status`, 'utf8'))) await immediate();
    expect(await isAlive(ref)).toBe(true);
    const exited = once(child, 'exit');
    expect(await killProcess(ref)).toBe(true);
    await untilGone(ref, systemClock);
    expect(await exited).toEqual([null, 'SIGKILL']);
  });

  it('lists a process with all its descendants and reads its unique memory', async () => {
    const child = spawn('sh', ['-c', '(sleep 1000 & echo ready; wait) & wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const tree = await processTree(child.pid as number);
    expect(tree).toHaveLength(3);
    expect(await uniqueMemoryBytes(process.pid)).toBeGreaterThan(1024 * 1024);
    expect(await uniqueMemoryBytes(NOBODY)).toBe(0);
    const exited = once(child, 'exit');
    for (const pid of tree) await killProcess((await findProcess(pid)) as ProcessRef);
    await exited;
  });
});
