import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isSeeded, seedHome, seedVersion } from '../../../harnesses/guest/home.ts';
import { spawnGuest, startGuest } from '../../support/guest-process.ts';

let dir: string;
let home: string;
let source: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-home-'));
  chmodSync(dir, 0o755);
  home = join(dir, 'home');
  source = join(dir, 'seed');
  mkdirSync(home);
  mkdirSync(join(source, '.cargo', 'bin'), { recursive: true });
  writeFileSync(join(source, '.cargo', 'bin', 'tool'), '#!/bin/sh\necho seeded\n', { mode: 0o755 });
  writeFileSync(join(source, '.cargo', 'env'), 'x'.repeat(5000));
  symlinkSync('bin/tool', join(source, '.cargo', 'link'));
  writeFileSync(join(source, '.profile'), 'profile\n');
  writeFileSync(join(source, 'VERSION'), '7\n');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const seed = () => ({ home, source });
/** Runs the seeding in a process of its own, so that the system can fail it or end it. */
const program = `import { seedHome } from '${join(import.meta.dirname, '../../../harnesses/guest/home.ts')}'; seedHome(${'JSON.parse(process.argv[1])'});`;
const argv = () => ['--input-type=module', '-e', program, JSON.stringify(seed())];
const visible = () => readdirSync(home).filter((name) => name !== '.outwork');

describe('seeding HOME', () => {
  it('brings every entry whole, with modes and links, and its version last', () => {
    seedHome(seed());
    expect(visible().sort()).toEqual(['.cargo', '.profile']);
    expect(spawnSync(join(home, '.cargo', 'link'), { encoding: 'utf8' }).stdout).toBe('seeded\n');
    expect(isSeeded(seed())).toBe(true);
    expect(readdirSync(join(home, '.outwork'))).toEqual(['home-version']);
  });

  it('leaves what its user has, and does nothing twice', () => {
    mkdirSync(join(home, '.cargo'));
    writeFileSync(join(home, '.cargo', 'mine'), 'mine');
    seedHome(seed());
    expect(readdirSync(join(home, '.cargo'))).toEqual(['mine']);
    rmSync(join(home, '.profile'));
    seedHome(seed());
    expect(existsSync(join(home, '.profile'))).toBe(false);
    writeFileSync(join(source, 'VERSION'), '8');
    seedHome(seed());
    expect(existsSync(join(home, '.profile'))).toBe(true);
  });

  it('has nothing to do without a seed', () => {
    expect(seedVersion(join(dir, 'none'))).toBeUndefined();
    seedHome({ home, source: join(dir, 'none') });
    expect(readdirSync(home)).toEqual([]);
  });

  it('a copy that the system fails is told, shows nothing of it, and the next start succeeds', () => {
    // No file may be longer than 4,096 bytes: what ENOSPC would do at the same place.
    const failed = spawnSync('prlimit', ['--fsize=4096', process.execPath, ...argv()], { encoding: 'utf8' });
    expect(failed.status).not.toBe(0);
    expect(failed.stderr).toMatch(/EFBIG/);
    expect(visible()).not.toContain('.cargo');
    expect(isSeeded(seed())).toBe(false);
    seedHome(seed());
    expect(readFileSync(join(home, '.cargo', 'env'), 'utf8')).toHaveLength(5000);
    expect(readdirSync(join(home, '.outwork'))).toEqual(['home-version']);
  });

  it('a process that is killed in the middle of a copy shows nothing of it, and the next start succeeds', async () => {
    for (let i = 0; i < 400; i += 1) writeFileSync(join(source, '.cargo', `file-${i}`), Buffer.alloc(64 * 1024));
    mkdirSync(join(home, '.outwork'));
    const begun = Promise.withResolvers<void>();
    const watcher = watch(join(home, '.outwork'), () => begun.resolve());
    const child = spawn(process.execPath, argv(), { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)));
    await begun.promise;
    child.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL');
    watcher.close();
    expect(visible()).not.toContain('.cargo');
    expect(readdirSync(join(home, '.outwork')).some((name) => name.startsWith('stage-'))).toBe(true);
    seedHome(seed());
    expect(readdirSync(join(home, '.cargo'))).toHaveLength(403);
    expect(readdirSync(join(home, '.outwork'))).toEqual(['home-version']);
  });

  it('(control) copying straight into place would show a part', () => {
    const plain = `import { cpSync } from 'node:fs'; cpSync('${join(source, '.cargo')}', '${join(home, '.cargo')}', { recursive: true });`;
    const failed = spawnSync('prlimit', ['--fsize=4096', process.execPath, '--input-type=module', '-e', plain]);
    expect(failed.status).not.toBe(0);
    expect(visible()).toContain('.cargo');
  });
});

describe('a guest with a seed', () => {
  it('seeds as the tool uid before its first command, whose PATH has the programs of HOME', async () => {
    await using guest = await startGuest({ env: { OUTWORK_HOME_SEED: source } });
    const reply = await guest.membrane.exec('run_1', { argv: ['tool'] });
    expect(reply.exec).toMatchObject({ exitCode: 0, stdout: 'seeded\n' });
    const owner = await guest.membrane.exec('run_1', { argv: ['stat', '-c', '%u', `${guest.home}/.cargo/bin/tool`] });
    expect(owner.exec?.stdout).toBe(`${guest.toolUid}\n`);
  });

  it('does not start when HOME cannot be seeded, and says why', async () => {
    chmodSync(join(source, '.profile'), 0);
    await using guest = await spawnGuest({ env: { OUTWORK_HOME_SEED: source } });
    expect(await guest.exitCode).toBe(2);
    expect(guest.stderr()).toContain('HOME cannot be seeded: EACCES');
    expect(readdirSync(guest.home).filter((name) => name === '.profile')).toEqual([]);
  });
});

describe('package managers of HOME', () => {
  it('have prefixes and caches there, on PATH, and a command may set its own', async () => {
    await using guest = await startGuest();
    const names = ['NPM_CONFIG_PREFIX', 'NPM_CONFIG_CACHE', 'PYTHONUSERBASE', 'CARGO_HOME', 'RUSTUP_HOME', 'GOPATH', 'XDG_CACHE_HOME'];
    const { exec } = await guest.membrane.exec('run_1', { argv: ['printenv', ...names] });
    expect(
      exec?.stdout
        .trim()
        .split('\n')
        .every((value) => value.startsWith(`${guest.home}/`)),
    ).toBe(true);
    const path = await guest.membrane.exec('run_1', { argv: ['printenv', 'PATH'] });
    expect(path.exec?.stdout.split(':').slice(0, 3)).toEqual(['.local/bin', '.cargo/bin', 'go/bin'].map((name) => `${guest.home}/${name}`));
    const own = await guest.membrane.exec('run_1', { argv: ['printenv', 'GOPATH'], env: { GOPATH: '/tmp/go' } });
    expect(own.exec?.stdout).toBe('/tmp/go\n');
  });

  it('a package installed for all projects with npm is found by the next command, and lies in HOME', async () => {
    await using guest = await startGuest();
    const dirOf = join(guest.workspace, 'package');
    mkdirSync(dirOf);
    writeFileSync(join(dirOf, 'package.json'), JSON.stringify({ name: 'hello-tool', version: '1.0.0', bin: 'hello.sh' }));
    writeFileSync(join(dirOf, 'hello.sh'), '#!/bin/sh\necho hello from HOME\n', { mode: 0o755 });
    for (const path of [dirOf, join(dirOf, 'package.json'), join(dirOf, 'hello.sh')]) chownSync(path, guest.toolUid, guest.helperGid);
    const npm = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim();
    expect(npm).not.toBe('');
    const install = await guest.membrane.exec('run_1', {
      argv: [npm, 'install', '--global', '--offline', '--no-audit', '--no-fund', './package'],
      env: { PATH: process.env.PATH ?? '' },
    });
    expect(install.exec).toMatchObject({ exitCode: 0 });
    const { exec } = await guest.membrane.exec('run_1', { argv: ['hello-tool'] });
    expect(exec).toMatchObject({ exitCode: 0, stdout: 'hello from HOME\n' });
    expect(existsSync(join(guest.home, '.local', 'lib', 'node_modules', 'hello-tool'))).toBe(true);
  });
});
