import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LAUNCHER, within } from '../support/launcher.ts';
import { kernelUsers } from '../support/sandbox-client.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-bad-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const options = () =>
  ({
    ...within(dir, { XDG_STATE_HOME: join(dir, 's') }),
    // A command that hangs fails its test by its exit code instead of holding the suite.
    timeout: 60_000,
  }) as const;
const outwork = (...args: string[]) => spawnSync(process.execPath, [LAUNCHER, ...args], options());

const errorOf = ({ status, stdout, stderr }: ReturnType<typeof outwork>) => {
  expect(stderr).not.toMatch(/^ +at /m);
  return { status, ...JSON.parse(stdout).error };
};

describe('a state directory that cannot be one', () => {
  it.each([
    ['user', 'ls'],
    ['run', '--user', 'ann', 'hi'],
    ['serve', '--listen', '127.0.0.1:0'],
    ['policy', 'status'],
  ])('%s %s refuses /proc, /sys and /dev at once, and makes nothing', (...command) => {
    for (const place of ['/proc/outwork', `/proc/${process.pid}/outwork/s`, '/sys/outwork', '/dev/outwork', '/dev/null/outwork']) {
      const error = errorOf(outwork('--state', place, '--json', ...command));
      expect(error).toMatchObject({ status: 3, code: 'state_directory_unusable', hint: expect.stringContaining('--state') });
    }
    expect(existsSync('/dev/outwork')).toBe(false);
  });

  it('compare refuses such a place for its report before it measures anything', () => {
    expect(errorOf(outwork('compare', '--out', '/proc/report', '--json'))).toMatchObject({ status: 2, code: 'invalid_argument' });
  });

  it('control: a directory that is there and one that has to be made are taken', () => {
    mkdirSync(join(dir, 'there'), { mode: 0o700 });
    for (const place of [join(dir, 'there'), join(dir, 'not', 'yet')]) expect(outwork('--state', place, 'user', 'ls').status).toBe(0);
  });
});

describe('a state directory that this user may not write', () => {
  it.each(kernelUsers().filter(({ uid }) => uid !== 0))('doctor and commands of $name say so', ({ uid }) => {
    const state = join(dir, 'closed');
    mkdirSync(state);
    chownSync(state, uid, uid);
    chmodSync(dir, 0o711);
    const as = (mode: number, ...args: string[]) => {
      chmodSync(state, mode);
      return spawnSync(process.execPath, [LAUNCHER, '--state', state, '--json', ...args], { ...options(), uid, gid: uid, cwd: '/' });
    };
    expect(errorOf(as(0o500, 'user', 'ls'))).toMatchObject({ status: 3, code: 'state_directory_unusable' });
    const stateOf = (result: ReturnType<typeof as>) => checkOf(result, 'state');
    expect(stateOf(as(0o500, 'doctor'))).toMatchObject({ ok: false, detail: expect.stringContaining('EACCES'), fix: expect.any(String) });
    // Control.
    expect(as(0o700, 'user', 'ls').status).toBe(0);
    expect(stateOf(as(0o700, 'doctor'))).toMatchObject({ ok: true });
  });
});

interface CheckLine {
  readonly id: string;
  readonly ok: boolean;
}
const checkOf = ({ stdout }: { readonly stdout: string }, id: string) =>
  (JSON.parse(stdout) as { checks: CheckLine[] }).checks.find((check) => check.id === id);

describe('an empty value', () => {
  it.each([
    ['--state', 'user', 'ls'],
    ['--config', 'user', 'ls'],
    ['--scenario', 'run', '--user', 'ann', 'hi'],
    ['--listen', 'serve'],
    ['--out', 'compare'],
  ])('of %s is a usage error and names it', (option, ...command) => {
    for (const empty of ['', '  ']) {
      const error = errorOf(outwork(...command, option, empty, '--json'));
      expect(error).toMatchObject({ status: 2, code: 'usage', message: expect.stringContaining(option) });
    }
  });
});

describe('standard output that takes nothing', () => {
  const into = (file: string, ...args: string[]) =>
    spawnSync('sh', ['-c', `exec "$0" "$@" >${file}`, process.execPath, LAUNCHER, ...args], options());

  it.each([[['user', 'ls']], [['user', 'ls', '--json']], [['--help']], [['doctor']], [['nonsense', '--json']]])(
    'a full disk under %j is told in one line',
    (args) => {
      const { status, stderr } = into('/dev/full', ...args);
      expect(status).toBe(1);
      expect(stderr).toMatch(/(^|\n)error: standard output cannot be written: ENOSPC.* \(output_lost\)\n$/);
      expect(stderr).not.toMatch(/^ +at /m);
      // Control.
      expect(into('/dev/null', ...args).stderr).not.toContain('output_lost');
    },
  );

  it('a reader that has gone is no error', () => {
    const { stderr } = spawnSync('sh', ['-c', '"$0" "$@" | true', process.execPath, LAUNCHER, 'config', 'show'], options());
    expect(stderr).not.toContain('EPIPE');
    expect(stderr).not.toContain('error');
  });
});

describe('too few open files', () => {
  const withFiles = (files: number, ...args: string[]) =>
    spawnSync('sh', ['-c', `ulimit -n ${files} && exec "$0" "$@"`, process.execPath, LAUNCHER, '--json', ...args], options());

  it.each([[['user', 'ls']], [['run', '--user', 'ann', 'hi']], [['serve', '--listen', '127.0.0.1:0']]])(
    '%j names the limit and the cure',
    (args) => {
      for (const files of [30, 40]) {
        expect(errorOf(withFiles(files, ...args))).toMatchObject({
          ...{ status: 3, code: 'open_files_exhausted', message: expect.stringContaining(`${files} files`) },
          hint: expect.stringContaining('ulimit -n'),
        });
      }
    },
  );

  it('doctor fails, and is good with enough', () => {
    expect(checkOf(withFiles(128, 'doctor'), 'open-files')).toMatchObject({ ok: false, fix: expect.stringContaining('ulimit') });
    expect(checkOf(withFiles(1024, 'doctor'), 'open-files')).toMatchObject({ ok: true });
  });
});

describe('a database that cannot be used', () => {
  let file: string;
  beforeEach(() => {
    expect(outwork('user', 'add', 'ann').status).toBe(0);
    file = join(dir, 's', 'outwork', 'outwork.db');
  });

  const spoil: Record<string, { code: string; says: RegExp; act: () => void }> = {
    'is no database': { code: 'store_damaged', says: /no database/, act: () => writeFileSync(file, 'x'.repeat(8192)) },
    'has lost the first page of its schema': {
      code: 'store_damaged',
      says: /damaged/,
      act: () => {
        const bytes = readFileSync(file);
        bytes.fill(0xff, 100, 4096);
        writeFileSync(file, bytes);
      },
    },
    'comes from a newer version': {
      code: 'schema_newer',
      says: /999-later/,
      act: () => {
        const database = new DatabaseSync(file);
        database.exec("insert into mikro_orm_migrations (name) values ('999-later')");
        database.close();
      },
    },
  };
  it.each(Object.entries(spoil))(
    '%s: doctor fails with a hint, commands and a kernel refuse, and it stays as it is',
    (_name, { code, says, act }) => {
      expect(checkOf(outwork('doctor', '--json'), 'database')).toMatchObject({ ok: true });
      act();
      const before = readFileSync(file);
      const doctor = outwork('doctor', '--json');
      expect(doctor.status).toBe(3);
      expect(checkOf(doctor, 'database')).toMatchObject({ ok: false, detail: expect.stringMatching(says), fix: expect.any(String) });
      for (const command of [
        ['user', 'ls'],
        ['run', '--user', 'ann', 'hi'],
        ['serve', '--listen', '127.0.0.1:0'],
      ])
        expect(errorOf(outwork('--json', ...command))).toMatchObject({ status: 3, code, hint: expect.any(String) });
      expect(readFileSync(file).equals(before)).toBe(true);
    },
  );

  it('a page that is damaged deep inside is found by doctor, which makes nothing beside the file', () => {
    const bytes = readFileSync(file);
    const last = bytes.length - 4096;
    bytes.fill(0xff, last, last + 64);
    writeFileSync(file, bytes);
    const files = readdirSync(join(dir, 's', 'outwork'));
    expect(checkOf(outwork('doctor', '--json'), 'database')).toMatchObject({ ok: false });
    expect(readdirSync(join(dir, 's', 'outwork'))).toEqual(files);
  });
});
