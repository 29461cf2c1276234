import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CommandOutcome } from '../../../core/capability/types.ts';
import type { ToolCommand } from '../../../core/ports/placement.ts';
import { execIn, type GuestProcess, startGuest } from '../../support/guest-process.ts';
import { HEADLESS } from '../../support/headless.ts';
import { livePids } from '../../support/live-pids.ts';

let guest: GuestProcess;
beforeAll(async () => {
  guest = await startGuest();
});
afterAll(async () => {
  expect(guest.membrane.faults).toEqual([]);
  await guest[Symbol.asyncDispose]();
});

const exec = (argv: readonly string[], more: Partial<ToolCommand> = {}): Promise<CommandOutcome> => execIn(guest, { argv, ...more });
const sh = (script: string, more: Partial<ToolCommand> = {}) => exec(['/bin/sh', '-c', script], more);
const refused = (argv: readonly string[], more: Partial<ToolCommand> = {}) =>
  exec(argv, more).then(
    () => 'ran',
    (error) => error.code,
  );
const anyAlive = () => livePids(guest.gids.filter((gid) => gid !== guest.helperGid));

describe('identity of a tool', () => {
  it('runs as the tool uid with one gid of its own, no groups and no capability', async () => {
    const { stdout } = await sh('id -u; id -G; grep Cap /proc/self/status; grep NoNew /proc/self/status');
    const [uid, groups, ...caps] = stdout.trim().split('\n');
    expect(uid).toBe(String(guest.toolUid));
    expect(guest.gids.slice(1)).toContain(Number(groups));
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(caps.find((line) => line.startsWith(set))).toMatch(/\t0+$/);
  });

  it('gives two commands at once different gids', async () => {
    const both = await Promise.all([sh('id -g; sleep 0.1'), sh('id -g; sleep 0.1')]);
    expect(new Set(both.map((outcome) => outcome.stdout)).size).toBe(2);
  });

  it('W20 inherits descriptors 0, 1 and 2 only', async () => {
    // 3 is the program's own reading of the directory.
    const { stdout: own } = await exec(['ls', '/proc/self/fd']);
    expect(own.trim().split('\n')).toEqual(['0', '1', '2', '3']);
  });

  it('leads a session of its own and has no terminal', async () => {
    const { stdout } = await sh('ps -o sid= -p $$ | tr -d " "; echo $$; test -t 0 || test -t 1 || echo none');
    const [session, pid, terminal] = stdout.trim().split('\n');
    expect([session, terminal]).toEqual([pid, 'none']);
  });

  it('sees no token and no variable of the guest', async () => {
    const { stdout } = await exec(['env']);
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
      .sort();
    const places = ['CARGO_HOME', 'GOPATH', 'NPM_CONFIG_CACHE', 'NPM_CONFIG_PREFIX', 'PYTHONUSERBASE', 'RUSTUP_HOME', 'XDG_CACHE_HOME'];
    expect(names).toEqual(['HOME', 'LANG', 'PATH', 'PIP_BREAK_SYSTEM_PACKAGES', 'TERM', 'TMPDIR', 'USER', ...places].sort());
    expect(stdout).toContain(`PATH=${guest.home}/.local/bin:`);
  });

  it("cannot read the guest's environment or memory", async () => {
    const { stdout, exitCode } = await sh(`cat /proc/${guest.child.pid}/environ /proc/${guest.child.pid}/maps`);
    expect(stdout).toBe('');
    expect(exitCode).toBe(1);
    // Control: this process may, so what refused was the uid.
    expect(readFileSync(`/proc/${guest.child.pid}/environ`, 'utf8')).toContain('OUTWORK_SOCKET');
  });
});

describe('standard streams', () => {
  it('W20 lets a tool open its streams again', async () => {
    expect(await sh('echo one > /dev/stdout; echo two | tee /dev/stderr; echo three > /proc/self/fd/1')).toMatchObject({
      exitCode: 0,
      stdout: 'one\ntwo\nthree\n',
      stderr: 'two\n',
    });
    expect(await sh('dd of=/dev/stdout 2>/dev/null', { stdin: 'through' })).toMatchObject({ exitCode: 0, stdout: 'through' });
  });

  it('gives stdin whole, or none', async () => {
    const stdin = 'äöü\n'.repeat(40_000);
    expect(await exec(['sha256sum'], { stdin: '' })).toMatchObject({ stdout: expect.stringMatching(/^e3b0c44298fc/) });
    expect(await exec(['wc', '-c'], { stdin })).toMatchObject({ stdout: `${Buffer.byteLength(stdin)}\n`, exitCode: 0 });
    expect(await exec(['cat'])).toMatchObject({ stdout: '', exitCode: 0 });
  });

  it('does not mind a tool that reads none of its input', async () => {
    expect(await exec(['true'], { stdin: 'x'.repeat(400_000) })).toMatchObject({ exitCode: 0 });
  });

  it('BL-090 cuts output on a character boundary, marker inside the limit, true counts', async () => {
    const outcome = await exec(['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do printf "─中😀"; i=$((i+1)); done'], { outputBytes: 4096 });
    expect(outcome).toMatchObject({ exitCode: 0, truncated: true, stdoutBytes: 20_000 });
    expect(Buffer.byteLength(outcome.stdout)).toBeLessThanOrEqual(4096);
    expect(outcome.stdout).toMatch(/^─中😀.*\n\[… \d+ of 20000 bytes left out …\]\n.*─中😀$/s);
    expect(outcome.stdout).not.toContain('\ufffd');
  });

  it('bounds a stream without end and still ends it', async () => {
    const outcome = await exec(['yes'], { outputBytes: 10_000, timeoutMs: 200 });
    expect(outcome).toMatchObject({ exitCode: null, timedOut: true, truncated: true });
    expect(Buffer.byteLength(outcome.stdout)).toBeLessThanOrEqual(10_000);
    expect(outcome.stdoutBytes).toBeGreaterThan(100_000);
  });

  it('brings every outcome below the size of a membrane body', async () => {
    const outcome = await sh("head -c 1048576 /dev/zero | tr '\\0' '\\1'; head -c 1048576 /dev/urandom >&2", { outputBytes: 1_048_576 });
    expect(outcome).toMatchObject({ exitCode: 0, stdoutBytes: 1_048_576, stderrBytes: 1_048_576, truncated: true });
  });
});

describe('how a command ended', () => {
  it('tells exit code, signal and timeout apart', async () => {
    expect(await sh('exit 9')).toMatchObject({ exitCode: 9, signal: null, timedOut: false });
    expect(await sh('kill -SEGV $$')).toMatchObject({ exitCode: null, signal: 'SIGSEGV', timedOut: false });
    expect(await exec(['sleep', '60'], { timeoutMs: 50 })).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: true });
  });

  it('BL-085 says 127 and 126 with the reason', async () => {
    writeFileSync(join(guest.workspace, 'plain'), 'no program', { mode: 0o644 });
    expect(await exec(['no-such-program'])).toMatchObject({ exitCode: 127, stderr: 'no-such-program: not found\n' });
    expect(await exec(['./plain'])).toMatchObject({ exitCode: 126, stderr: expect.stringContaining('permission denied') });
    expect(await exec(['/bin'])).toMatchObject({ exitCode: 126 });
    expect(await exec(['true', 'x'.repeat(131_072)])).toMatchObject({ exitCode: 126, stderr: expect.stringContaining('E2BIG') });
  });

  it('BL-080 returns when the main process has ended, and ends the child that keeps stdout', async () => {
    expect(await sh('sleep 600 & exit 3')).toMatchObject({ exitCode: 3, timedOut: false });
    expect(anyAlive()).toEqual([]);
  });

  it('waits for the last words of a child', async () => {
    // The child speaks once its parent is gone, without starting anything that a busy machine could keep waiting.
    expect(await sh('(while kill -0 $$ 2>/dev/null; do :; done; echo late) & exit 0')).toMatchObject({ stdout: 'late\n' });
  });

  it('ends with an abort by exec.cancel, and says so', async () => {
    const reply = guest.membrane.exec('run_1', { argv: ['sh', '-c', 'echo begun; sleep 600'] });
    guest.membrane.send({ type: 'exec.cancel', id: reply.id });
    expect((await reply).exec).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: false });
    expect(anyAlive()).toEqual([]);
  });
});

describe('ending a tree', () => {
  const python = (body: string) => ['python3', '-c', body];

  it('W8 ends double forks that left their session and ignore TERM', async () => {
    const script = `
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(6):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for fd in (0, 1, 2): os.close(fd)
            time.sleep(600)
        os._exit(0)
print('gone', flush=True)
`;
    expect(await exec(python(script))).toMatchObject({ exitCode: 0, stdout: 'gone\n' });
    expect(anyAlive()).toEqual([]);
  });

  it('W6 ends a fork bomb at its timeout', async () => {
    const script = `
import os, time
for i in range(7):
    os.fork()
os.setsid() if os.getpid() != os.getsid(0) else None
time.sleep(600)
`;
    expect(await exec(python(script), { timeoutMs: 500 })).toMatchObject({ timedOut: true, exitCode: null });
    expect(anyAlive()).toEqual([]);
  });

  it('catches a chain in which each process leaves its session, a child and ends; other commands go on', async () => {
    const script = `
import os, time
if os.fork() == 0:
    end = time.time() + 20
    while time.time() < end:
        os.setsid()
        if os.fork() != 0: os._exit(0)
`;
    const other = sh('i=0; while [ $i -lt 60 ]; do i=$((i+1)); sleep 0.01; done; echo whole');
    expect(await exec(python(script))).toMatchObject({ exitCode: 0 });
    expect(await other).toMatchObject({ exitCode: 0, stdout: 'whole\n' });
    expect(anyAlive()).toEqual([]);
  });

  it('leaves another command alone', async () => {
    const other = sh('sleep 0.3; echo whole');
    expect(await exec(['sleep', '60'], { timeoutMs: 20 })).toMatchObject({ timedOut: true });
    expect(await other).toMatchObject({ exitCode: 0, stdout: 'whole\n' });
  });

  it('W8 ends a process whose main thread has ended: it looks like a zombie and lives on in another thread', async () => {
    expect(await exec(python(HEADLESS))).toMatchObject({ exitCode: 0, stdout: 'looks dead\n' });
    expect(anyAlive()).toEqual([]);
  });

  it.each([
    ['setsid', 'setsid -f sleep 600; exit 3'],
    ['nohup', 'nohup sleep 600 >/dev/null 2>&1 & exit 3'],
    ['a child that is stopped', 'sleep 600 & kill -STOP $!; exit 3'],
    ['a child that ignores every polite signal and holds stdout', '(trap "" TERM HUP INT QUIT; while :; do sleep 600; done) & exit 3'],
    ['a chain of exec', 'sh -c "exec setsid sh -c \\"exec sleep 600\\"" & exit 3'],
    ['a child that gave its streams away', 'sleep 600 </dev/null >/dev/null 2>&1 & exec >&- 2>&-; exit 3'],
  ])('BL-080 ends %s with its call', async (_, script) => {
    expect(await sh(script)).toMatchObject({ exitCode: 3, signal: null, timedOut: false });
    expect(anyAlive()).toEqual([]);
  });

  it('a command that has stopped itself is ended at its timeout', async () => {
    expect(await sh('kill -STOP $$; exit 3', { timeoutMs: 100 })).toMatchObject({ exitCode: null, timedOut: true });
    expect(anyAlive()).toEqual([]);
  });

  it('finds a process that made itself undumpable, whose files in /proc belong to root', async () => {
    const script = `
import ctypes, os, time
ctypes.CDLL(None).prctl(4, 0)
print(os.stat("/proc/self/status").st_gid, flush=True)
if os.fork() == 0:
    os.close(1)
    os.close(2)
    time.sleep(600)
`;
    expect(await exec(python(script))).toMatchObject({ exitCode: 0, stdout: '0\n' });
    expect(anyAlive()).toEqual([]);
  });
});

describe('environment and arguments', () => {
  it('BL-087 passes values byte-exact', async () => {
    const env = { FOO: 'foo\n\nbar=\n\'"$(id)`id`\\', EMPTY: '', PAD: 'ä'.repeat(32_768), _x1: '%s' };
    const { stdout } = await exec(
      ['python3', '-c', 'import os,json;print(json.dumps({k: os.environ[k] for k in ("FOO","EMPTY","PAD","_x1")}))'],
      {
        env,
        outputBytes: 1_048_576,
      },
    );
    expect(JSON.parse(stdout)).toEqual(env);
  });

  it('BL-087 refuses names and values that no environment holds', async () => {
    for (const name of ['A-B', 'BASH_FUNC_x%%', '1A', 'A=B', '', 'Ä'])
      expect(await refused(['env'], { env: { [name]: 'x' } })).toBe('invalid_arguments');
    expect(await refused(['env'], { env: { A: 'a\0b' } })).toBe('invalid_arguments');
    expect(await refused(['echo', 'a\0b'])).toBe('invalid_arguments');
    expect(await refused([''])).toBe('invalid_arguments');
    expect(await refused(['env'], { env: { A_B1: 'x' } })).toBe('ran');
  });

  it('passes many and odd arguments', async () => {
    const args = ['', ' ', '-n', '*', '$HOME', "'", 'ä\n', ...Array.from({ length: 240 }, (_, i) => `${i}`.padStart(400, 'x'))];
    const { stdout } = await exec(['python3', '-c', 'import sys,json;print(json.dumps(sys.argv[1:]))', ...args], {
      outputBytes: 1_048_576,
    });
    expect(JSON.parse(stdout)).toEqual(args);
  });
});

describe('working directory', () => {
  beforeAll(() => {
    mkdirSync(join(guest.workspace, 'sub', 'deep'), { recursive: true });
    symlinkSync('/etc', join(guest.workspace, 'out'));
    symlinkSync('sub/deep', join(guest.workspace, 'in'));
  });

  it('is the workspace, or a directory below it', async () => {
    expect(await exec(['pwd'])).toMatchObject({ stdout: `${guest.workspace}\n` });
    expect(await exec(['pwd'], { cwd: './sub//deep' })).toMatchObject({ stdout: `${guest.workspace}/sub/deep\n` });
    expect(await exec(['pwd', '-P'], { cwd: 'in' })).toMatchObject({ stdout: `${guest.workspace}/sub/deep\n` });
  });

  it('passes arguments, environment and exit code through the change of directory', async () => {
    const outcome = await exec(['sh', '-c', 'printf "%s|" "$@" "$X"; env | grep OLDPWD; exit 4', 'sh', '', 'a b', '$X'], {
      cwd: 'sub',
      env: { X: 'one\ntwo' },
    });
    expect(outcome).toMatchObject({ exitCode: 4, stdout: '|a b|$X|one\ntwo|', stderr: '' });
    expect(await exec(['no-such-program'], { cwd: 'sub' })).toMatchObject({ exitCode: 127 });
  });

  it('BL-087 passes variables that a shell would change, and a program that looks like one', async () => {
    const env = { IFS: ',', OPTIND: 'none', PPID: '1', PWD: '/nowhere', OLDPWD: '/before', PS1: 'a\n', LINENO: 'b', _: 'c', SHLVL: 'd' };
    const show = ['env', '-0'];
    for (const cwd of ['.', 'sub']) {
      const shown = (await exec(show, { env, cwd })).stdout.split('\0');
      for (const [name, value] of Object.entries(env)) expect(shown).toContain(`${name}=${value}`);
    }
    expect((await exec(show, { cwd: 'sub' })).stdout.split('\0').sort()).toEqual((await exec(show)).stdout.split('\0').sort());
    writeFileSync(join(guest.workspace, 'sub', 'a=b'), '#!/bin/sh\necho "$0 $1 $X"; exit 5\n', { mode: 0o755 });
    expect(await exec(['./a=b', 'c=d'], { cwd: 'sub', env: { X: 'x' } })).toMatchObject({ exitCode: 5, stdout: './a=b c=d x\n' });
    expect(await exec(['-x=y'], { cwd: 'sub' })).toMatchObject({ exitCode: 127 });
  });

  it('may have a newline, a dash or a space in its name, and may be gone when its command has begun', async () => {
    for (const name of ['new\nline', 'ends with a newline\n', '-P', ' ']) {
      mkdirSync(join(guest.workspace, name));
      expect(await exec(['pwd'], { cwd: name })).toMatchObject({ exitCode: 0, stdout: `${guest.workspace}/${name}\n` });
    }
    expect(await sh('mkdir gone', {})).toMatchObject({ exitCode: 0 });
    const outcome = await sh('rmdir ../gone; ls; touch x 2>/dev/null || exit 6', { cwd: 'gone' });
    expect(outcome).toMatchObject({ exitCode: 6, stdout: '' });
  });

  it('BL-100 is refused when it leads out of the workspace', async () => {
    for (const cwd of ['..', 'sub/../..', '/etc', '/']) expect(await refused(['pwd'], { cwd })).toBe('path_outside_workspace');
    expect(await refused(['pwd'], { cwd: 'out' })).toBe('path_outside_workspace');
    expect(await refused(['pwd'], { cwd: 'none' })).toBe('file_not_found');
    expect(await refused(['pwd'], { cwd: 'sub' })).toBe('ran');
  });

  it('is entered with the rights of the tool, not of the guest', async () => {
    expect(await sh('mkdir private && chmod 700 private')).toMatchObject({ exitCode: 0 });
    expect(await exec(['pwd'], { cwd: 'private' })).toMatchObject({ stdout: `${guest.workspace}/private\n` });
    mkdirSync(join(guest.workspace, 'of-root'), { mode: 0o700 });
    expect(await refused(['pwd'], { cwd: 'of-root' })).toBe('file_not_found');
  });
});

describe('what is left behind', () => {
  const descriptors = () => readdirSync(`/proc/${guest.child.pid}/fd`).length;

  it('runs 200 short commands, several at once, and leaves no process, descriptor or file', async () => {
    await exec(['true']);
    const before = { fds: descriptors(), workspace: readdirSync(guest.workspace).length };
    for (let round = 0; round < 20; round += 1) {
      const outcomes = await Promise.all(Array.from({ length: 10 }, (_, i) => exec(['echo', `${round}.${i}`])));
      expect(outcomes.map(({ stdout, exitCode }) => `${exitCode} ${stdout}`)).toEqual(outcomes.map((_, i) => `0 ${round}.${i}\n`));
    }
    expect(anyAlive()).toEqual([]);
    // Connections of the keep-alive pool and one batch of FIFOs in the making may differ by a few.
    expect(descriptors()).toBeLessThanOrEqual(before.fds + 6);
    expect(readdirSync(guest.workspace).length).toBe(before.workspace);
    expect(readdirSync(guest.privateDir).filter((name) => !name.startsWith('fifo-'))).toEqual(['background']);
    expect(readdirSync(guest.privateDir).length).toBeLessThan(120);
    expect(existsSync(join(guest.home, '.outwork'))).toBe(false);
  });

  it('refuses more commands at once than it has gids, and goes on', async () => {
    const waiting = Array.from({ length: 19 }, () => guest.membrane.exec('run_1', { argv: ['sleep', '60'] }));
    expect(await refused(['true'])).toBe('invocations_exhausted');
    for (const reply of waiting) guest.membrane.send({ type: 'exec.cancel', id: reply.id });
    await Promise.all(waiting);
    expect(await exec(['true'])).toMatchObject({ exitCode: 0 });
  });
});
