import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { PrerequisiteError } from '../../core/errors.ts';
import { runGit } from './git.ts';
import type { RepositoryFacts } from './results.ts';

const MiB = 1024 * 1024;
/** A bundle above this is made anew from the newest commit's files alone; they go through a file helper in pieces, once per user. */
const BOUNDS = { fullBytes: 32 * MiB, tipBytes: 256 * MiB } as const;
export type BundleBounds = { readonly [Bound in keyof typeof BOUNDS]: number };

export interface RepositoryBundle {
  readonly file: string;
  readonly facts: RepositoryFacts;
}

/**
 * Bundles the git repository around `directory` into `workDir`; when there is none, makes a small real one. Reads only: nothing is written
 * to the repository, and uncommitted work stays out.
 *
 * @throws PrerequisiteError `component_missing` when git is not there
 */
export async function bundleRepository(directory: string, workDir: string, bounds: BundleBounds = BOUNDS): Promise<RepositoryBundle> {
  const top = await runGit(directory, ['rev-parse', '--show-toplevel']).catch(missingGit);
  const commit = top === undefined ? undefined : await runGit(top, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']).catch(missingGit);
  if (top === undefined || commit === undefined) return await bundleSample(workDir);
  const full = await bundleHistory(top, join(workDir, 'full.bundle'), bounds.fullBytes);
  if (full !== undefined) return await described(top, full, 'full');
  const tip = await bundleTip(top, workDir, bounds.tipBytes);
  return tip === undefined ? await bundleSample(workDir) : await described(top, tip, 'tip');
}

async function described(top: string, file: string, history: 'full' | 'tip'): Promise<RepositoryBundle> {
  const files = (await runGit(top, ['ls-tree', '-r', '--name-only', '-z', 'HEAD'])).split('\0').filter((name) => name !== '').length;
  const bundleMiB = Number(((await stat(file)).size / MiB).toFixed(3));
  const commit = await runGit(top, ['rev-parse', '--short', 'HEAD']);
  return { file, facts: { name: basename(top), commit, files, bundleMiB, history } };
}

/** Streams `git bundle create` to `file`; undefined, and no file, when it would be larger than `limit`. */
async function bundleHistory(repository: string, file: string, limit: number): Promise<string | undefined> {
  const child = spawn('git', ['-C', repository, 'bundle', 'create', '--quiet', '-', 'HEAD'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject));
  let bytes = 0;
  async function* bounded(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > limit) break;
      yield chunk;
    }
  }
  await pipeline(child.stdout, bounded, createWriteStream(file, { mode: 0o600 })).catch(() => {});
  if (bytes > limit) child.kill();
  const code = await ended;
  if (code === 0 && bytes <= limit) return file;
  await rm(file, { force: true });
  return undefined;
}

/** The newest commit's files under a commit without parents, made in a repository of ours that borrows the objects. */
async function bundleTip(top: string, workDir: string, limit: number): Promise<string | undefined> {
  const borrowed = join(workDir, 'tip.git');
  await runGit(workDir, ['init', '--quiet', '--bare', borrowed]);
  const objects = await runGit(top, ['rev-parse', '--path-format=absolute', '--git-path', 'objects']);
  await writeFile(join(borrowed, 'objects', 'info', 'alternates'), `${objects}\n`);
  const tree = await runGit(top, ['rev-parse', 'HEAD^{tree}']);
  await commitTree(borrowed, tree, 'The newest files, without their history');
  const file = await bundleHistory(borrowed, join(workDir, 'tip.bundle'), limit);
  await rm(borrowed, { recursive: true, force: true });
  return file;
}

/** A small real repository: where there is none to survey, the figures must still come from real git work. */
async function bundleSample(workDir: string): Promise<RepositoryBundle> {
  const top = join(workDir, 'sample');
  await mkdir(join(top, 'src'), { recursive: true });
  await runGit(workDir, ['init', '--quiet', top]);
  for (let index = 1; index <= 40; index += 1) {
    const lines = Array.from({ length: 50 }, (_, line) => `export const value${line} = ${index * line}; // TODO none`);
    await writeFile(join(top, 'src', `part-${index}.ts`), `${lines.join('\n')}\n`);
  }
  await writeFile(join(top, 'README.md'), '# Sample\n\nForty small modules to survey.\n');
  await runGit(top, ['add', '--all']);
  await commitTree(top, await runGit(top, ['write-tree']), 'Forty small modules');
  const file = await bundleHistory(top, join(workDir, 'sample.bundle'), BOUNDS.fullBytes);
  if (file === undefined) throw new PrerequisiteError('component_missing', 'git could not bundle a repository of its own making');
  return await described(top, file, 'full');
}

async function commitTree(repository: string, tree: string, message: string): Promise<void> {
  const identity = ['-c', 'user.name=outwork', '-c', 'user.email=outwork@localhost', '-c', 'commit.gpgSign=false'];
  const commit = await runGit(repository, [...identity, 'commit-tree', tree, '-m', message]);
  await runGit(repository, ['update-ref', 'HEAD', commit]);
}

function missingGit(error: unknown): undefined {
  if (error instanceof PrerequisiteError) throw error;
  return undefined;
}
