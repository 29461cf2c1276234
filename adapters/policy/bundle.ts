import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { digestOf, sha256Hex } from '../../core/json.ts';
import type { PolicyDigests } from '../../core/policy/types.ts';
import { loadSettings } from './settings.ts';
import { ENTRYPOINT, type Manifest, sourceDigest } from './sources.ts';

/** One snapshot of rules and data: all that a decision depends on. */
export interface Bundle {
  readonly wasm: Uint8Array;
  readonly dataJson: string;
  readonly digests: PolicyDigests;
}

/**
 * Reads a bundle root: `dist/policy.wasm`, `dist/manifest.json`, the rules it was built from, `data/` and `schemas/`.
 *
 * @throws PolicyError `policy_stale` when rules, module and manifest do not belong together; `policy_malformed` for anything unreadable
 */
export async function loadBundle(dir: string): Promise<Bundle> {
  try {
    const manifest = await readManifest(dir);
    const [wasm, sources, settings] = await Promise.all([readFile(join(dir, 'dist', 'policy.wasm')), sourceDigest(dir), loadSettings(dir)]);
    if (sources !== manifest.sources) throw stale('The rules are not those that policies were built from.');
    if (sha256Hex(wasm) !== manifest.wasm) throw stale('The compiled policy is not the one its manifest names.');
    return { wasm, dataJson: settings.json, digests: { rules: manifest.wasm, data: settings.digest } };
  } catch (error) {
    if (error instanceof PolicyError) throw error;
    throw new PolicyError('policy_malformed', `The policy bundle cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** Changes when any file of the bundle root may have changed. Cheap: looks at no content. */
export async function bundleSignature(dir: string): Promise<string> {
  const rows: string[] = [];
  for (const folder of ['data', 'dist', 'outwork', 'schemas']) {
    const entries = await readdir(join(dir, folder), { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((one) => one.isFile())) {
      const path = join(entry.parentPath, entry.name);
      const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
      rows.push(`${path} ${ino} ${size} ${mtimeNs} ${ctimeNs}`);
    }
  }
  return digestOf('outwork.policy-signature', rows.sort());
}

async function readManifest(dir: string): Promise<Manifest> {
  const value: Partial<Manifest> | null = JSON.parse(await readFile(join(dir, 'dist', 'manifest.json'), 'utf8'));
  const whole =
    value?.schema === 1 && typeof value.sources === 'string' && typeof value.wasm === 'string' && Array.isArray(value.entrypoints);
  if (!whole || !value.entrypoints?.includes(ENTRYPOINT)) {
    throw new PolicyError('policy_malformed', 'dist/manifest.json is not a manifest of this version with the entrypoint outwork/decision.');
  }
  return value as Manifest;
}

const stale = (message: string): PolicyError => new PolicyError('policy_stale', message, { hint: 'outwork policy build' });
