import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { buildPolicy } from '../../../adapters/policy/build.ts';

/** The bundle root of this repository. */
export const SHIPPED = fileURLToPath(new URL('../../../policies', import.meta.url));

/** A copy of the shipped bundle root that a test may change. */
export async function copyOfShipped(): Promise<string> {
  const dir = await temporaryDir();
  await cp(SHIPPED, dir, { recursive: true });
  return dir;
}

/** A built bundle root with one rule file of package `outwork` and no data. */
export async function tinyPolicy(rules: string): Promise<string> {
  const dir = await temporaryDir();
  await Promise.all(['outwork', 'data', 'schemas/settings'].map((folder) => mkdir(join(dir, folder), { recursive: true })));
  await writeFile(join(dir, 'outwork', 'decision.rego'), `package outwork\n\n${rules}\n`);
  await buildPolicy(dir);
  return dir;
}

export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'outwork-test-policy-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
