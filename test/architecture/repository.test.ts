import { describe, expect, it } from 'vitest';
import { read, trackedFiles } from './sources.ts';

/** Top level: fixed by the project's owner. What tools need to find there carries its reason. */
const TOP_LEVEL: Readonly<Record<string, string>> = {
  core: 'layout',
  adapters: 'layout',
  policies: 'layout',
  harnesses: 'layout',
  'proxy-recipes': 'layout',
  'threat-model': 'layout',
  test: 'layout',
  'README.md': 'layout',
  'ARCHITECTURE.md': 'layout',
  'CONTRIBUTING.md': 'layout',
  'SECURITY.md': 'layout',
  LICENSE: 'layout',
  'package.json': 'layout',
  'package-lock.json': 'layout',
  'tsconfig.json': 'layout',
  'vitest.config.ts': 'layout',
  '.ci': 'layout',
  'tsconfig.build.json': 'the compiler reads what to emit from a second file beside the first',
  '.biome.json': 'the formatter and linter look for it here',
  '.gitignore': 'git looks for it here',
  '.npmrc': 'npm looks for it here: it keeps addresses out of the lock file',
};

/** Files over the size at which one asks which two jobs they do, and why each is one. Test files with many small cases are not asked. */
const LONG_FILES: Readonly<Record<string, string>> = {
  'adapters/compose.ts': 'the composition root: one list of every part and what it is made of',
  'adapters/sandbox/seccomp/table.ts': 'one table: every system call that a sandbox may make',
  'core/ports/store.ts': 'a port is one file: its methods, their value types and the numbered clauses of its contract',
  'adapters/store/mikro-orm/entities.ts': 'one table: the whole schema of the database',
  'core/wire/schemas.ts': 'one table: a schema for every body of the wire',
};
const LINES = 300;

const BINARY = /\.(wasm|png|gz)$/;
const texts = () => trackedFiles().filter((file) => !BINARY.test(file));

// Names of hosts that only the package managers should know, by how such hosts are called: no name is written here either.
const PACKAGE_HOST =
  /\b(?:registry|registries|mirrors?|proxy|packages|package|deb|archive|snapshot|security|pypi|files|index|artifactory|nexus|npm|cdn)(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|cn|internal|local|corp)\b/i;
// Homes inside a sandbox and in made-up tables are nobody's.
const MACHINE_PATH = /(?<![\w.$}-])\/(?:work|root|Users|mnt|home\/(?!(?:agent|user|ok)\/)[a-z0-9_-]+)\/[A-Za-z0-9_.]/;

const lines = (file: string, pattern: RegExp): string[] =>
  read(file)
    .split('\n')
    .flatMap((line, i) => (pattern.test(line) ? [`${file}:${i + 1}: ${line.trim().slice(0, 120)}`] : []));

describe('the repository', () => {
  it('has the top level of the layout, and every other entry with its reason', () => {
    const entries = [...new Set(trackedFiles().map((file) => file.split('/')[0] ?? ''))];
    expect(entries.filter((entry) => TOP_LEVEL[entry] === undefined)).toEqual([]);
  });

  it('names no host of a registry or mirror', () => {
    expect(texts().flatMap((file) => lines(file, PACKAGE_HOST))).toEqual([]);
  });

  it('names no path of the machine it was made on', () => {
    expect(texts().flatMap((file) => lines(file, MACHINE_PATH))).toEqual([]);
  });

  it('control: such names and paths would be found', () => {
    // Put together here so that this file does not name them.
    for (const host of ['registry.example', 'deb.example', 'proxy.go.example', 'mirror.example'])
      expect(`https://${host}.org/x`).toMatch(PACKAGE_HOST);
    for (const path of ['work/main', 'root/.cache', 'home/ann/x', 'Users/ann']) expect(`cd "/${path}"`).toMatch(MACHINE_PATH);
    expect('/home/agent/.local/bin and ./work/x and /opt/outwork').not.toMatch(MACHINE_PATH);
  });

  it('has a lock file without addresses, with a digest for every package', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { resolved?: string; integrity?: string }> };
    const entries = Object.entries(packages).filter(([path]) => path !== '');
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
    expect(entries.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).toEqual([]);
  });

  it('pins every dependency to one version', () => {
    const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
    const ranges = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) => Object.entries(manifest[kind] ?? {}));
    expect(ranges.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  it('has no long file without a reason', () => {
    const sources = trackedFiles().filter((file) => /\.(ts|js|rego|sh)$/.test(file) && !/\.test\.ts$|_test\.rego$/.test(file));
    const long = sources.filter((file) => read(file).trimEnd().split('\n').length > LINES);
    expect(long.filter((file) => LONG_FILES[file] === undefined)).toEqual([]);
    expect(Object.keys(LONG_FILES).filter((file) => !sources.includes(file))).toEqual([]);
  });

  it('names files in kebab-case, and none of them utils', () => {
    const sources = trackedFiles().filter((file) => /^(core|adapters|harnesses|test)\/.*\.(ts|js)$/.test(file));
    const names = sources.flatMap((file) => file.split('/').slice(1));
    expect(names.filter((name) => !/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:test|d))?(?:\.(?:ts|js))?$/.test(name))).toEqual([]);
    expect(sources.filter((file) => /\butils?\b|\bcommon\b/.test(file))).toEqual([]);
  });

  it('sources use what can be erased: no default export, enum, decorator, namespace', () => {
    const sources = trackedFiles().filter((file) => /^(core|adapters|harnesses)\/.*\.ts$/.test(file) && !file.endsWith('.d.ts'));
    const forbidden = /^\s*(?:export\s+default\b|(?:export\s+)?(?:const\s+)?enum\s|(?:export\s+)?namespace\s|@[A-Z]\w*\()/m;
    expect(sources.filter((file) => forbidden.test(read(file)))).toEqual([]);
  });
});
