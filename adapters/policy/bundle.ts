import { readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { digestOf, sha256Hex } from '../../core/json.ts';
import { CONTRACT_VERSION } from '../../core/policy/contracts.ts';
import type { PolicyDigests } from '../../core/policy/types.ts';
import { loadCases, type PolicyCase } from './cases.ts';
import { FileCache } from './file-cache.ts';
import { verifyFileSet } from './file-set.ts';
import { loadSettings } from './settings.ts';
import { loadSite, type Site } from './site.ts';
import { distDir, ENTRYPOINT, type Manifest, sourceDigest } from './sources.ts';

/** One snapshot of rules and data: all that a decision depends on. */
export interface Bundle {
  readonly wasm: Uint8Array;
  readonly dataJson: string;
  readonly digests: PolicyDigests & { readonly version: number };
  /** Digest of rules, data and version as one. */
  readonly snapshot: string;
  readonly manifest: Manifest;
  readonly cases: readonly PolicyCase[];
  /** The installation's own rules and schemas; undefined when it has none. */
  readonly site: Site | undefined;
  /** Compact JWS over the digests, when the bundle carries one. */
  readonly signature: string | undefined;
}

/**
 * Reads a bundle root: `dist/policy.wasm`, `dist/manifest.json`, the rules it was built from, `data/`, `schemas/` and `cases/`. With
 * `siteDir`, `dist/` is there and was built from both.
 *
 * @throws PolicyError `policy_stale` when rules, module and manifest do not belong together, or nothing was built; `policy_malformed` for anything unreadable or
 *   anything that does not belong there
 * @param cache - kept by whoever reads the same root again and again
 */
export async function loadBundle(dir: string, siteDir?: string, cache: FileCache = new FileCache()): Promise<Bundle> {
  try {
    await verifyFileSet(dir);
    if (siteDir !== undefined) await verifyFileSet(siteDir);
    const dist = distDir(dir, siteDir);
    const manifest = await readManifest(dist);
    const [wasm, sources, settings, cases, site, signature] = await Promise.all([
      readFile(join(dist, 'policy.wasm')),
      sourceDigest(dir, siteDir),
      loadSettings(dir, siteDir, cache),
      loadCases(dir, siteDir, cache),
      siteDir === undefined ? undefined : loadSite(siteDir),
      readFile(join(dist, 'release.jws'), 'utf8').catch(() => undefined),
    ]);
    if (sources !== manifest.sources)
      throw stale(`${dist} was built from other rules: they, or the shipped ones beside them, have changed since.`);
    if (sha256Hex(wasm) !== manifest.wasm) throw stale('The compiled policy is not the one its manifest names.');
    const digests = { rules: manifest.wasm, data: settings.digest, version: settings.version };
    return {
      wasm,
      dataJson: settings.json,
      digests,
      snapshot: snapshotDigest(digests),
      manifest,
      cases,
      site,
      signature: signature?.trim(),
    };
  } catch (error) {
    if (error instanceof PolicyError) throw error;
    throw new PolicyError('policy_malformed', `The policy bundle cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

export const snapshotDigest = (digests: PolicyDigests): string => digestOf('outwork.policy-snapshot', digests);

/** Digest of data, from its JSON. */
export function dataDigest(dataJson: string): string {
  const { settings, site_settings } = JSON.parse(dataJson) as { settings: unknown; site_settings?: unknown };
  return digestOf('outwork.policy-data', site_settings === undefined ? settings : { settings, site_settings });
}

/**
 * Changes when any file of the bundle roots may have changed. Looks at no content, and at all files at once: some 70 looks take half a
 * millisecond, through the thread pool they took ten of it, in the middle of somebody's turn.
 */
export function bundleSignature(dir: string, siteDir?: string): string {
  const rows = [...statRows(dir, ['outwork', 'data', 'schemas']), ...statRows(dir, ['cases'], true)];
  if (siteDir === undefined) rows.push(...statRows(dir, ['dist']));
  else rows.push(...statRows(siteDir, ['site', 'data', 'schemas', 'cases', 'dist'], true));
  return digestOf('outwork.policy-signature', rows.sort());
}

function statRows(root: string, folders: readonly string[], optional = false): readonly string[] {
  return folders.flatMap((folder) =>
    filesIn(join(root, folder), optional).map((path) => {
      const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      return `${path} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    }),
  );
}

function filesIn(folder: string, optional: boolean): readonly string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if (optional && (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function readManifest(dist: string): Promise<Manifest> {
  const text = await readFile(join(dist, 'manifest.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw stale(`No compiled rules are in ${dist}: nothing was built there yet.`);
    throw error;
  });
  const value: Partial<Manifest> | null = JSON.parse(text);
  const whole =
    value?.schema === 1 &&
    typeof value.sources === 'string' &&
    typeof value.wasm === 'string' &&
    Array.isArray(value.rules) &&
    Array.isArray(value.entrypoints);
  if (!whole || !value.entrypoints?.includes(ENTRYPOINT)) {
    throw new PolicyError('policy_malformed', 'dist/manifest.json is not a manifest of this version with the entrypoint outwork/decision.');
  }
  if (value.contract !== CONTRACT_VERSION) {
    throw stale(
      `The rules were built for version ${value.contract} of the input contracts; this kernel asks in version ${CONTRACT_VERSION}.`,
    );
  }
  return value as Manifest;
}

const stale = (message: string): PolicyError => new PolicyError('policy_stale', message, { hint: 'outwork policy build' });
