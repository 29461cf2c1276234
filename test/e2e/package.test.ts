import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

let dir: string;
let files: string[];

/** The package as npm would publish it, installed below a directory of its own, with this checkout's dependencies beside it. */
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-pack-'));
  const packed = spawnSync('npm', ['pack', '--json', '--pack-destination', dir], { cwd: ROOT, encoding: 'utf8' });
  expect(packed.status, packed.stderr).toBe(0);
  const [{ filename, files: list }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n'))) as [
    { filename: string; files: { path: string }[] },
  ];
  files = list.map(({ path }) => path);
  const modules = join(dir, 'node_modules');
  mkdirSync(join(modules, 'outwork'), { recursive: true });
  const unpacked = spawnSync('tar', ['xzf', join(dir, filename), '--strip-components=1', '-C', join(modules, 'outwork')]);
  expect(unpacked.status).toBe(0);
  for (const name of readdirSync(join(ROOT, 'node_modules'))) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
}, 180_000);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const outwork = (...args: string[]) => {
  const launcher = join(dir, 'node_modules', 'outwork', 'adapters', 'cli', 'launcher.js');
  const env = { PATH: process.env.PATH ?? '', HOME: dir, XDG_STATE_HOME: join(dir, 'state') };
  return spawnSync(process.execPath, [launcher, ...args], { cwd: dir, encoding: 'utf8', env });
};

describe('the packed package', () => {
  it('holds emitted code, rules and licence, and no source, test or secret', () => {
    expect(files).toContain('adapters/cli/launcher.js');
    expect(files).toContain('LICENSE');
    expect(files).toContain('build/package/policies/dist/policy.wasm');
    expect(files).toContain('build/package/harnesses/guest/guest.cjs');
    expect(files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))).toEqual([]);
    expect(files.filter((file) => /\.test\.|(^|\/)\.env|\.pem$|\.key$/.test(file))).toEqual([]);
  });

  it('runs a turn from its own files', () => {
    expect(outwork('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(outwork('config', 'check')).toMatchObject({ status: 0 });
    expect(outwork('user', 'add', 'ann')).toMatchObject({ status: 0 });
    const { status, stdout, stderr } = outwork('run', '--user', 'ann', '--placement', 'disposable-per-run', 'hi', '--json');
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ run: { state: 'completed' }, reply: expect.any(String) });
  });

  it('its four entry points load, and nothing else of it can be imported', () => {
    const script = `
      for (const entry of ['outwork', 'outwork/core', 'outwork/wire']) await import(entry);
      import.meta.resolve('outwork/conformance');
      await import('outwork/adapters/compose.js').then(() => process.exit(9), (error) => console.log(error.code));
      const { createKernel, loadConfig } = await import('outwork');
      const kernel = await createKernel(loadConfig({ env: process.env, cwd: process.cwd(), stateDir: 'embedded' }));
      console.log((await kernel.policyStatus()).ready);
      await kernel.close();`;
    writeFileSync(join(dir, 'entry.mjs'), script);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(dir, 'entry.mjs')], { cwd: dir, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    expect(stdout).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\ntrue\n');
  });

  it('types resolve for a program that uses it', () => {
    writeFileSync(
      join(dir, 'user.ts'),
      `import { createKernel, loadConfig } from 'outwork';
       import type { Kernel, Run } from 'outwork/core';
       import { WIRE_VERSION } from 'outwork/wire';
       export const open = (): Promise<Kernel> => createKernel(loadConfig({ env: {}, cwd: '/' }));
       export const state = (run: Run): string => run.state + WIRE_VERSION;`,
    );
    const compiler = join(ROOT, 'node_modules', '.bin', 'tsc');
    const args = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024', '--types', 'node', 'user.ts'];
    const { status, stdout } = spawnSync(compiler, args, { cwd: dir, encoding: 'utf8' });
    expect(status, stdout).toBe(0);
  });
});
