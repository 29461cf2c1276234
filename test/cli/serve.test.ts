import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { OPERATOR_SOCKET } from '../../adapters/api/operator-methods.ts';
import { notifyManager } from '../../adapters/cli/service-manager.ts';
import { LAUNCHER, type RunningOutwork, startOutwork, within } from '../support/launcher.ts';
import { CliWorld } from './cli-world.ts';

let dir: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-serve-'));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

function start(...args: string[]): RunningOutwork {
  const running = startOutwork(dir, ['--state', join(dir, 's'), ...args]);
  started.push(running.child);
  return running;
}

const run = async (...args: string[]) => {
  const command = start(...args, '--json');
  const code = await command.exit;
  return { code, document: JSON.parse(command.text.stdout) };
};

it('serves API and operator socket, logs as JSON, refuses a second one by the first one’s pid, and ends well on SIGTERM', async () => {
  const server = start('serve', '--listen', '127.0.0.1:0');
  const [, url = ''] = await server.prints(/listening on (http:\S+)/);
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true });
  expect(statSync(join(dir, 's', OPERATOR_SOCKET)).mode & 0o777).toBe(0o600);

  // Other commands reach it by its socket; the API knows the token at once, and no more once it is revoked.
  expect((await run('user', 'add', 'ann')).code).toBe(0);
  const { token } = (await run('user', 'token', 'ann')).document;
  const me = () => fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(await (await me()).json()).toMatchObject({ name: 'ann' });
  expect((await run('user', 'token', 'ann', '--revoke')).document).toEqual({ revoked: 1 });
  expect((await me()).status).toBe(401);
  expect((await run('user', 'disable', 'ann')).document).toMatchObject({ disabled: true });
  expect((await run('user', 'enable', 'ann')).document).toMatchObject({ disabled: false });

  const second = await run('serve', '--listen', '127.0.0.1:0');
  expect(second.code).toBe(3);
  expect(second.document.error).toMatchObject({ code: 'state_locked', message: expect.stringContaining(`process ${server.child.pid}`) });

  server.child.kill('SIGTERM');
  expect(await server.exit).toBe(0);
  const lines = server.text.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: string; msg: string; event?: string });
  expect(lines.map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(['serving', 'user.added', 'user.tokens_revoked', 'user.disabled', 'stopped']),
  );
  expect(server.text.stderr).not.toContain('no run can be served');
  expect(server.text.stderr).not.toContain(token);
  expect(statSync(join(dir, 's', OPERATOR_SOCKET), { throwIfNoEntry: false })).toBeUndefined();
  // What it held is free: the next command opens it alone.
  expect((await run('user', 'ls')).document).toHaveLength(1);
});

it('with --json says where it listens as a document, and log.level is obeyed', async () => {
  writeFileSync(join(dir, 'outwork.yaml'), 'log: {level: silent}\napi: {metrics: open, listen: "127.0.0.1:0"}\n');
  const server = start('serve', '--json');
  const [text] = await server.prints(/\{"listening".*\}/);
  const { listening, pid, socket } = JSON.parse(text) as { listening: string; pid: number; socket: string };
  expect([pid, socket]).toEqual([server.child.pid, join(dir, 's', OPERATOR_SOCKET)]);
  const metrics = await (await fetch(`${listening}/metrics`)).text();
  expect(metrics).toMatch(/^outwork_queue_depth 0$/m);
  expect(metrics).toMatch(/^outwork_sandboxes\{state="busy"\} 0$/m);
  server.child.kill('SIGINT');
  expect(await server.exit).toBe(0);
  expect(server.text.stderr).toBe('');
});

it('what keeps it from serving a run is a line of its log, with what looks into it (control: elsewhere in this file there is none)', async () => {
  const hidden = 'mount --bind /dev/null "$(command -v bwrap)" && exec "$@"';
  const command = [process.execPath, LAUNCHER, '--state', join(dir, 's'), 'serve', '--listen', '127.0.0.1:0'];
  const child = spawn('unshare', ['--map-root-user', '--mount', 'sh', '-c', hidden, 'sh', ...command], within(dir));
  started.push(child);
  let log = '';
  for await (const chunk of child.stderr.setEncoding('utf8')) {
    log += chunk;
    if (log.includes('"part":')) child.kill('SIGTERM');
  }
  const said = log.split('\n').find((line) => line.includes('"part":'));
  expect(JSON.parse(said ?? log)).toMatchObject({
    level: 'warn',
    part: 'engine',
    msg: 'no run can be served: bwrap is not installed (outwork doctor)',
  });
});

it('a second signal leaves at once', async () => {
  using world = new CliWorld();
  const server = world.start('serve', '--listen', '127.0.0.1:0');
  await server.prints('listening on');
  server.interrupt();
  expect(server.exits).toEqual([]);
  server.interrupt();
  expect(server.exits).toEqual([130]);
  // The double's `exit` does not leave: it ends as it would have.
  expect((await server.result).code).toBe(0);
});

it('an address beyond loopback is refused before anything is opened', async () => {
  const { code, document } = await run('serve', '--listen', '0.0.0.0:0');
  expect([code, document.error.code]).toEqual([4, 'config_malformed']);
  expect(statSync(join(dir, 's'), { throwIfNoEntry: false })).toBeUndefined();
});

it('a service manager is told that it is ready, and that it stops', async () => {
  const told = join(dir, 'told');
  const program = join(dir, 'systemd-notify');
  writeFileSync(program, `#!/bin/sh\necho "$1 $NOTIFY_SOCKET" >> ${told}\n`);
  chmodSync(program, 0o755);
  const env = { PATH: `${dir}:/usr/bin:/bin`, NOTIFY_SOCKET: '/run/notify' };
  expect(await notifyManager(env, 'ready')).toBeUndefined();
  expect(await notifyManager(env, 'stopping')).toBeUndefined();
  expect(readFileSync(told, 'utf8')).toBe('--ready /run/notify\nSTOPPING=1 /run/notify\n');
  // Nobody listens: nothing is started. A program that is not there is a reason, not an error.
  expect(await notifyManager({ PATH: dir }, 'ready')).toBeUndefined();
  expect(await notifyManager({ PATH: '/nonexistent', NOTIFY_SOCKET: '/x' }, 'ready')).toContain('systemd-notify');
  expect(readFileSync(told, 'utf8').split('\n')).toHaveLength(3);
});
