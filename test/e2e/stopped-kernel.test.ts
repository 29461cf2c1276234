import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startOutwork } from '../support/launcher.ts';

let dir: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-stop-'));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

function start(...args: string[]) {
  const running = startOutwork(dir, args, { XDG_STATE_HOME: join(dir, 's') });
  started.push(running.child);
  return running;
}

it('commands that ask, follow and tail give a stopped kernel up, and name its process and the cure', async () => {
  expect(await start('user', 'add', 'ann').exit).toBe(0);
  const server = start('serve', '--listen', '127.0.0.1:0');
  await server.prints(/listening on/);
  const tail = start('events', 'tail');
  await tail.prints(/user\.added/);
  const following = start('run', '--user', 'ann', 'hi', '--placement', 'host-loop-shell', '--wait');
  await following.prints(/run\.completed|Hello/);
  expect(await following.exit).toBe(0);

  server.child.kill('SIGSTOP');
  const asking = start('runs', 'ls', '--json');
  const posting = start('run', '--user', 'ann', 'hi');
  expect(await Promise.all([asking.exit, posting.exit, tail.exit])).toEqual([3, 3, 3]);
  const pid = server.child.pid;
  for (const { text } of [posting, tail]) {
    expect(text.stderr).toMatch(
      new RegExp(`does not answer on .*operator\\.sock \\(process ${pid}, which is stopped\\) \\(kernel_unresponsive\\)`),
    );
    expect(text.stderr).toContain(`hint: kill -CONT ${pid}`);
  }
  expect(JSON.parse(asking.text.stdout)).toMatchObject({ error: { code: 'kernel_unresponsive', hint: expect.stringContaining(`${pid}`) } });

  // Control: it was the stop; the cure that the hint names is one.
  server.child.kill('SIGCONT');
  expect(await start('runs', 'ls').exit).toBe(0);
  server.child.kill('SIGTERM');
  expect(await server.exit).toBe(0);
});
