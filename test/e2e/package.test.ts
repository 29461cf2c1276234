import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CompareResults } from '../../adapters/compare/results.ts';

const ROOT = join(import.meta.dirname, '..', '..');

let dir: string;
let files: string[];

/** The package as npm would publish it, installed with its dependencies in a folder that holds nothing else. */
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-pack-'));
  const packed = npm(ROOT, 'pack', '--json', '--pack-destination', dir);
  expect(packed.status, packed.stderr).toBe(0);
  const [{ filename, files: list }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n'))) as [
    { filename: string; files: { path: string }[] },
  ];
  files = list.map(({ path }) => path);
  const installed = npm(dir, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', join(dir, filename));
  expect(installed.status, installed.stderr).toBe(0);
}, 300_000);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Without the folders that npm put before it: the checkout's Node and tools are not there for a stranger. */
const strangersPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

const npm = (cwd: string, ...args: string[]) =>
  spawnSync('npm', args, { cwd, encoding: 'utf8', env: { ...process.env, PATH: strangersPath, npm_config_update_notifier: 'false' } });

const outwork = (...args: string[]) => {
  const env = { PATH: strangersPath, HOME: dir, XDG_STATE_HOME: join(dir, 'state'), npm_config_update_notifier: 'false' };
  return spawnSync('npx', ['--offline', 'outwork', ...args], { cwd: dir, encoding: 'utf8', env });
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

  it('finds the machine good with the Node that came with it', () => {
    const { status, stdout, stderr } = outwork('doctor', '--json');
    expect(status, `${stdout}${stderr}`).toBe(0);
    const { checks } = JSON.parse(stdout) as { checks: { id: string; detail: string }[] };
    expect(checks.find(({ id }) => id === 'node')?.detail).toContain(join(dir, 'node_modules'));
  });

  it('compares the placements and writes the report', () => {
    const { status, stdout, stderr } = outwork('compare', '--quick', '--json', '--out', 'report');
    expect(status, stderr).toBe(0);
    const { placements, unmeasured } = JSON.parse(stdout) as CompareResults;
    expect(placements.map(({ failed, lost, duplicates }) => ({ failed, lost, duplicates }))).toEqual(
      Array.from({ length: 3 }, () => ({ failed: 0, lost: 0, duplicates: 0 })),
    );
    // What only a checkout can tell is said not to be measured.
    expect(unmeasured.some(({ field }) => field.endsWith('.code'))).toBe(true);
    expect(readFileSync(join(dir, 'report', 'index.html'), 'utf8')).toContain('host-loop-shell');
    expect(existsSync(join(dir, 'report', 'results.json'))).toBe(true);
  }, 300_000);

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
    const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules', '@types')];
    const args = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024', ...types, 'user.ts'];
    const { status, stdout } = spawnSync(compiler, args, { cwd: dir, encoding: 'utf8' });
    expect(status, stdout).toBe(0);
  });
});
