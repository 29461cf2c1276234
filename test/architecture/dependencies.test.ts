import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsBelow, ROOT, read } from './sources.ts';

interface LockEntry {
  readonly hasInstallScript?: boolean;
}

/** Packages that may run a script of their own while npm installs them, by their path in the lock file, and why. None may. */
const INSTALL_SCRIPTS: Readonly<Record<string, string>> = {};

/** What no file of ours imports, and why it is a dependency all the same. */
const NOT_IMPORTED: Readonly<Record<string, string>> = {
  'reflect-metadata': 'inversify asks the program that uses it to bring one',
};

const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
const names = (kind: string): string[] => Object.keys(manifest[kind] ?? {});
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
const imported = (...folders: string[]): ReadonlySet<string> =>
  new Set(
    importsBelow(...folders)
      .filter(({ target, specifier }) => target === undefined && !specifier.startsWith('node:'))
      .map(({ specifier }) => packageOf(specifier)),
  );

const scripted = (packages: Readonly<Record<string, LockEntry>>): string[] =>
  Object.entries(packages).flatMap(([path, { hasInstallScript }]) => (hasInstallScript ? [path] : []));

/** What the package itself says, where it is installed: a lock file may have been written without having seen it. */
function installedScript(path: string): boolean {
  const file = join(ROOT, path, 'package.json');
  if (!existsSync(file)) return false;
  const { scripts = {} } = JSON.parse(readFileSync(file, 'utf8')) as { scripts?: Record<string, string> };
  return ['preinstall', 'install', 'postinstall'].some((name) => name in scripts) || existsSync(join(ROOT, path, 'binding.gyp'));
}

describe('dependencies', () => {
  it('run no script while they are installed, but for those on the list', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> };
    const paths = Object.keys(packages).filter((path) => path !== '');
    const running = new Set([...scripted(packages), ...paths.filter(installedScript)]);
    expect([...running].filter((path) => INSTALL_SCRIPTS[path] === undefined)).toEqual([]);
    expect(Object.keys(INSTALL_SCRIPTS).filter((path) => !running.has(path))).toEqual([]);
  });

  it('control: a package with an install script is found', () => {
    expect(scripted({ 'node_modules/a': {}, 'node_modules/b': { hasInstallScript: true } })).toEqual(['node_modules/b']);
  });

  it('are all used by what ships, and what ships uses no other', () => {
    const used = imported('core', 'adapters', 'harnesses');
    expect(names('dependencies').filter((name) => !used.has(name) && NOT_IMPORTED[name] === undefined)).toEqual([]);
    // The guest is bundled when the package is built, and an installed package has it ready.
    const missing = [...used].filter((name) => !names('dependencies').includes(name) && name !== 'rolldown');
    expect(missing).toEqual([]);
  });

  it('of tests alone are development dependencies', () => {
    const known = new Set([...names('dependencies'), ...names('devDependencies')]);
    expect([...imported('test')].filter((name) => !known.has(name) && name !== 'outwork')).toEqual([]);
  });
});
