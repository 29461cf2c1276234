import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundleRepository } from '../../adapters/compare/repository.ts';

let work: string;
let source: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'ow-work-'));
  source = await mkdtemp(join(tmpdir(), 'ow-source-'));
});
afterEach(() => Promise.all([work, source].map((directory) => rm(directory, { recursive: true, force: true }))));

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-C', source, '-c', 'user.name=T', '-c', 'user.email=t@example.test', ...args], { encoding: 'utf8' }).trim();

async function twoCommits(): Promise<void> {
  git('init', '--quiet');
  await writeFile(join(source, 'a.txt'), 'one\n');
  git('add', '.');
  git('commit', '--quiet', '-m', 'First');
  await writeFile(join(source, 'a.txt'), 'two\n');
  git('commit', '--quiet', '-a', '-m', 'Second');
}

const cloned = (bundle: string): string => {
  const target = join(work, 'clone');
  execFileSync('git', ['-c', 'advice.detachedHead=false', 'clone', '--quiet', bundle, target]);
  return target;
};

test('a repository is bundled with its history; uncommitted work stays out and nothing is written to it', async () => {
  await twoCommits();
  await writeFile(join(source, 'a.txt'), 'uncommitted\n');
  const before = git('status', '--porcelain', '--branch');
  const { file, facts } = await bundleRepository(source, work);
  expect(facts).toMatchObject({ commit: git('rev-parse', '--short', 'HEAD'), files: 1, history: 'full' });
  const clone = cloned(file);
  expect(execFileSync('git', ['-C', clone, 'log', '--format=%s'], { encoding: 'utf8' })).toBe('Second\nFirst\n');
  expect(execFileSync('git', ['-C', clone, 'show', 'HEAD:a.txt'], { encoding: 'utf8' })).toBe('two\n');
  expect(git('status', '--porcelain', '--branch')).toBe(before);
});

test('a subdirectory finds the repository around it', async () => {
  await twoCommits();
  const inner = join(source, 'inner');
  await mkdir(inner);
  expect((await bundleRepository(inner, work)).facts.files).toBe(1);
});

test('a history over the bound is left out; the newest files come without it', async () => {
  await twoCommits();
  const { file, facts } = await bundleRepository(source, work, { fullBytes: 100, tipBytes: 1024 * 1024 });
  expect(facts).toMatchObject({ files: 1, history: 'tip' });
  const clone = cloned(file);
  expect(execFileSync('git', ['-C', clone, 'log', '--format=%s'], { encoding: 'utf8' }).trim().split('\n')).toHaveLength(1);
  expect(execFileSync('git', ['-C', clone, 'show', 'HEAD:a.txt'], { encoding: 'utf8' })).toBe('two\n');
  expect(await readdir(work)).not.toContain('full.bundle');
});

test('where there is no repository, or none with a commit, a small real one is made', async () => {
  const { file, facts } = await bundleRepository(source, work);
  expect(facts).toMatchObject({ name: 'sample', files: 41 });
  git('init', '--quiet');
  expect((await bundleRepository(source, await mkdtemp(join(work, 'second-')))).facts.name).toBe('sample');
  expect(await readdir(cloned(file))).toContain('README.md');
});
