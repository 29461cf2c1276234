import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CompiledConfig } from '../../core/config.ts';
import { PolicyError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json.ts';
import { packageFolder } from '../config.ts';
import { type Bundle, dataDigest, loadBundle, snapshotDigest } from './bundle.ts';
import { type Difference, differenceBetween, NO_DIFFERENCE } from './gates.ts';
import { PolicySnapshots } from './snapshots.ts';
import { SHIPPED_DATA } from './sources.ts';
import { withServing } from './with-serving.ts';

/**
 * The rules and data that came with this package: its compiled rules, and the data beside which they were built, whatever lies in its
 * `data/` by now.
 *
 * @throws PolicyError `policy_malformed` `policy_stale`: the package is not whole
 */
export async function loadShipped(dir: string = packageFolder('policies')): Promise<Bundle> {
  const bundle = await loadBundle(dir);
  const text = await readFile(join(dir, 'dist', SHIPPED_DATA), 'utf8').catch((cause) => {
    throw new PolicyError('policy_malformed', `dist/${SHIPPED_DATA} cannot be read`, { cause, hint: 'outwork policy build' });
  });
  const dataJson = canonicalJson(JSON.parse(text));
  const { version = 0 } = (JSON.parse(dataJson) as { settings: { release?: { version?: number } } }).settings.release ?? {};
  const digests = { rules: bundle.digests.rules, data: dataDigest(dataJson), version };
  return { ...bundle, dataJson, digests, snapshot: snapshotDigest(digests) };
}

/** How what was accepted last, or else what is on disk, differs from what was shipped. */
export interface ShippedComparison extends Difference {
  /** Snapshot that was looked at. */
  readonly snapshot: string;
  readonly shipped: string;
}

/** @throws PolicyError as `loadBundle`, and when what was accepted last cannot be read */
export async function compareWithShipped({
  policy: { dir, siteDir },
  stateDir,
}: Pick<CompiledConfig, 'policy' | 'stateDir'>): Promise<ShippedComparison> {
  const snapshots = new PolicySnapshots(stateDir);
  const accepted = await snapshots.accepted();
  const [shipped, next] = await Promise.all([
    loadShipped(),
    accepted === undefined ? loadBundle(dir, siteDir) : snapshots.load(accepted.snapshot),
  ]);
  const names = { snapshot: next.snapshot, shipped: shipped.snapshot };
  if (next.snapshot === shipped.snapshot) return { ...names, ...NO_DIFFERENCE };
  const difference = await withServing(shipped, (served) => withServing(next, (other) => differenceBetween(served, other, [])));
  return { ...names, ...difference };
}
