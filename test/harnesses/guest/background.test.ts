import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BackgroundRecord } from '../../../core/capability/types.ts';
import type { BackgroundCommand, BackgroundOperation, BackgroundResult, ToolCommand } from '../../../core/ports/placement.ts';
import { execIn, type GuestProcess, startGuest } from '../../support/guest-process.ts';
import { livePids } from '../../support/live-pids.ts';

let guest: GuestProcess;
beforeAll(async () => {
  guest = await startGuest();
});
afterAll(async () => {
  expect(guest.membrane.faults).toEqual([]);
  await guest[Symbol.asyncDispose]();
});

const start = async (script: string, more: Partial<ToolCommand> = {}): Promise<BackgroundRecord> => {
  const { background } = await execIn(guest, { argv: ['/bin/sh', '-c', script], background: true, ...more });
  return background ?? expect.fail('it did not start');
};
const ask = async (operation: BackgroundOperation): Promise<BackgroundResult> => {
  const { background, error } = await guest.membrane.background(operation);
  if (background === undefined) throw Object.assign(new Error(error?.message), { code: error?.code });
  return background;
};
const commands = async (): Promise<readonly BackgroundCommand[]> => {
  const result = await ask({ op: 'list' });
  return result.op === 'list' ? result.commands : [];
};
const stateOf = async (id: string): Promise<BackgroundCommand> => {
  const found = (await commands()).find((command) => command.id === id);
  if (found === undefined) throw new Error(`${id} is not listed`);
  return found;
};
const tail = async (id: string, maxBytes = 4096): Promise<string> => {
  const result = await ask({ op: 'tail', id, maxBytes });
  return result.op === 'tail' ? result.text : '';
};
/** Asks until the guest says so: it is the guest that is tested. */
const until = async (id: string, fits: (command: BackgroundCommand) => boolean): Promise<BackgroundCommand> => {
  for (;;) {
    const command = await stateOf(id);
    if (fits(command)) return command;
  }
};

describe('the record of a background command', () => {
  it('finding 9: names the pid and process group it has, and the log that is really written', async () => {
    const record = await start('echo "$$ $(ps -o pgid= -p $$)"; exec sleep 60');
    await until(record.id, ({ bytes }) => bytes > 0);
    const [pid, pgid] = (await tail(record.id)).trim().split(/\s+/);
    expect([String(record.pid), String(record.pgid)]).toEqual([pid, pgid]);
    expect(existsSync(record.log)).toBe(true);
    expect(statSync(record.log).uid).toBe(guest.toolUid);
    await ask({ op: 'kill', id: record.id });
    expect(readFileSync(record.log, 'utf8')).toContain(`${pid} `);
  });

  it('the log is there, however soon somebody looks', async () => {
    const record = await start('exit 0');
    expect(existsSync(record.log)).toBe(true);
  });

  it('two commands have ids, gids and logs of their own', async () => {
    const [one, two] = await Promise.all([start('id -g; exec sleep 60'), start('id -g; exec sleep 60')]);
    for (const { id } of [one, two]) await until(id, ({ bytes }) => bytes > 0);
    expect(await tail(one.id)).not.toBe(await tail(two.id));
    expect(one.log).not.toBe(two.log);
    for (const { id } of [one, two]) await ask({ op: 'kill', id });
  });
});

describe('looking after background commands', () => {
  it('BL-089 are listed with how they stand, also when they have ended', async () => {
    const runs = await start('exec sleep 60');
    const ended = await start('echo out; exit 7');
    expect(await stateOf(runs.id)).toMatchObject({ ...runs, running: true, exitCode: null, signal: null });
    expect(await until(ended.id, ({ running }) => !running)).toMatchObject({ exitCode: 7, signal: null, bytes: 4 });
    await ask({ op: 'kill', id: runs.id });
    expect(await stateOf(runs.id)).toMatchObject({ running: false, exitCode: null, signal: 'SIGKILL' });
  });

  it('BL-089 are listed with the ports on which they listen, each with its own; the end of one frees its port', async () => {
    const serve = (port: number) =>
      start(`exec python3 -c '
import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(s.getsockname()[1], flush=True)
time.sleep(600)' ${port}`);
    const listens = async ({ id }: BackgroundRecord) => {
      await until(id, ({ bytes }) => bytes > 0);
      return Number(await tail(id));
    };
    const [one, two, none] = [await serve(0), await serve(0), await start('exec sleep 600')];
    const [first, second] = [await listens(one), await listens(two)];
    expect(await stateOf(one.id)).toMatchObject({ ports: [first], pid: one.pid, log: one.log });
    expect(await stateOf(two.id)).toMatchObject({ ports: [second] });
    expect(await stateOf(none.id)).not.toHaveProperty('ports');
    // Control: somebody listens on a port, and it is not theirs.
    const mine = createServer().listen(0, '127.0.0.1');
    await once(mine, 'listening');
    expect(JSON.stringify(await ask({ op: 'list' }))).not.toContain(String((mine.address() as AddressInfo).port));
    mine.close();
    await ask({ op: 'kill', id: one.id });
    expect(await stateOf(one.id)).not.toHaveProperty('ports');
    expect(await listens(await serve(first))).toBe(first);
    for (const command of (await commands()).filter(({ running }) => running)) await ask({ op: 'kill', id: command.id });
    expect(livePids(guest.gids.filter((gid) => gid !== guest.helperGid))).toEqual([]);
  });

  it('kill ends everything the command has started, and nothing else', async () => {
    const other = await start('exec sleep 60');
    const tree = await start('trap "" TERM; (setsid sleep 600 &) ; sleep 600 & echo up; wait');
    await until(tree.id, ({ bytes }) => bytes > 0);
    expect(await ask({ op: 'kill', id: tree.id })).toMatchObject({ op: 'kill', command: { id: tree.id, running: false } });
    expect(await stateOf(other.id)).toMatchObject({ running: true });
    // What has ended is ended again without complaint.
    expect(await ask({ op: 'kill', id: tree.id })).toMatchObject({ command: { running: false } });
    await ask({ op: 'kill', id: other.id });
    expect(livePids(guest.gids.filter((gid) => gid !== guest.helperGid))).toEqual([]);
  });

  it('tail gives the newest output within its limit', async () => {
    const record = await start('i=0; while [ $i -lt 5000 ]; do echo "line $i ─"; i=$((i+1)); done');
    await until(record.id, ({ running }) => !running);
    const text = await tail(record.id, 2000);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2000);
    expect(text).toMatch(/line 4999 ─\n$/);
    expect(text.isWellFormed()).toBe(true);
  });

  it('an id that nobody has is refused', async () => {
    await expect(ask({ op: 'tail', id: 'bg_none', maxBytes: 1024 })).rejects.toMatchObject({ code: 'not_running' });
    await expect(ask({ op: 'kill', id: 'bg_none' })).rejects.toMatchObject({ code: 'not_running' });
  });
});

describe('what cannot be started in the background', () => {
  it('is told at once: a directory that is not there or leads out, a program that is not there, a copy of the output', async () => {
    symlinkSync('/etc', join(guest.workspace, 'out'));
    const refused = (more: Partial<ToolCommand>) => start('exec sleep 600', more).catch((error) => error.code);
    expect(await refused({ cwd: 'none' })).toBe('file_not_found');
    expect(await refused({ cwd: 'out' })).toBe('path_outside_workspace');
    expect(await refused({ save: { path: 'copy' } })).toBe('invalid_arguments');
    const { exec } = await guest.membrane.exec('run_1', { argv: ['no-such-program'], background: true });
    expect(exec).toMatchObject({ exitCode: 127, stderr: 'no-such-program: could not be started (ENOENT)\n' });
    expect(exec).not.toHaveProperty('background');
    expect(livePids(guest.gids.filter((gid) => gid !== guest.helperGid))).toEqual([]);
    // Control: from a directory that is there it starts.
    mkdirSync(join(guest.workspace, 'there'));
    const { id } = await start('exec sleep 600', { cwd: 'there' });
    await ask({ op: 'kill', id });
  });
});

describe('limits of background commands', () => {
  it('OUT a log never outgrows its limit, its marks included, and the command goes on', async () => {
    for (const outputBytes of [1, 1024, 5000]) {
      const record = await start('head -c 200000 /dev/zero | tr "\\0" x; echo; exit 3', { outputBytes });
      await until(record.id, ({ running }) => !running);
      const log = readFileSync(record.log, 'utf8');
      expect(Buffer.byteLength(log)).toBeLessThanOrEqual(Math.max(1024, outputBytes));
      expect(log).toMatch(/^x+\n\[… \d+ of 200001 bytes left out …\]\nx+\n\[ended: exit code 3\]\n$/);
      expect(await stateOf(record.id)).toMatchObject({ exitCode: 3, bytes: 200_001 });
    }
  });

  it('OUT a log has the beginning while its command runs, beginning and end when it has ended, and no half of anything', async () => {
    const units = ['─', '中', '😀', '\x1b[38;5;12m'];
    const besides = (text: string) => units.reduce((rest, unit) => rest.replaceAll(unit, ''), text);
    const unit = units.join('').replace('\x1b', '\\x1b');
    for (const outputBytes of [1024, 1025, 1026, 1027, 1031]) {
      const script = `import sys, time\nfor i in range(3000): sys.stdout.write("${unit}"); i % 7 or sys.stdout.flush()\nprint("last", flush=True)\ntime.sleep(600)`;
      const record = await start(`exec python3 -c '${script}'`, { outputBytes });
      while ((await tail(record.id, 1024)).endsWith('last\n') === false);
      const log = () => readFileSync(record.log, 'utf8');
      while (!log().includes('log is full'));
      expect(besides(log())).toBe('\n[… log is full …]\n');
      expect(Buffer.byteLength(log())).toBeGreaterThan(outputBytes - 130);
      await ask({ op: 'kill', id: record.id });
      expect(besides(log())).toMatch(/^\n\[… \d+ of \d+ bytes left out …\]\nlast\n\[ended: SIGKILL\]\n$/);
      expect(Buffer.byteLength(log())).toBeLessThanOrEqual(outputBytes);
      expect(Buffer.byteLength(log())).toBeGreaterThan(outputBytes - 130);
    }
  });

  it('a lifetime ends it with all it has started', async () => {
    const record = await start('sleep 600 & sleep 600', { lifetimeMs: 1 });
    expect(await until(record.id, ({ running }) => !running)).toMatchObject({ signal: 'SIGKILL' });
    expect(livePids(guest.gids.filter((gid) => gid !== guest.helperGid))).toEqual([]);
  });

  it('the number of those that live is bounded, that of ended ones is not', async () => {
    const records = [];
    for (let i = 0; i < 16; i += 1) records.push(await start('exec sleep 60'));
    await expect(start('true')).rejects.toMatchObject({ code: 'background_limit' });
    for (const { id } of records) await ask({ op: 'kill', id });
    for (let i = 0; i < 70; i += 1) {
      const { id } = await start('true');
      await until(id, ({ running }) => !running);
    }
    const listed = await ask({ op: 'list' });
    expect(listed.op === 'list' && listed.commands.length).toBeLessThanOrEqual(64);
    const logs = listed.op === 'list' ? new Set(listed.commands.map(({ log }) => log)) : new Set();
    expect(logs.size).toBe(listed.op === 'list' ? listed.commands.length : -1);
  });
});
