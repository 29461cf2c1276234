import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PolicyError, UsageError } from '../../core/errors.ts';
import { sha256Hex } from '../../core/json.ts';
import type { KnownSnapshot } from '../../core/policy/control.ts';
import { type Bundle, dataDigest, snapshotDigest } from './bundle.ts';

/** What runs, as far as a state directory remembers it. */
export interface Accepted {
  readonly snapshot: string;
  /** The highest version that was ever accepted here. */
  readonly highest: number;
  /** A snapshot on disk that was rolled back from: it stays out until it changes or somebody applies it. */
  readonly held: string | undefined;
}

/** Snapshots that are kept; an older one can not be rolled back to. */
const KEPT = 50;

type Stored = Pick<Bundle, 'dataJson' | 'digests' | 'manifest' | 'cases' | 'site'> & { readonly schema: 1; readonly acceptedAtMs: number };

/**
 * Every snapshot that a kernel of this state directory has accepted, so that a restart goes on with the last good one and a rollback has
 * where to go. Lies in `<stateDir>/policy`; whoever can write there is the operator.
 */
export class PolicySnapshots {
  readonly #folder: string;

  constructor(stateDir: string) {
    this.#folder = join(stateDir, 'policy');
  }

  /** @throws PolicyError `policy_malformed` when the record is there and cannot be read */
  async accepted(): Promise<Accepted | undefined> {
    const text = await readFile(join(this.#folder, 'current.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const value = this.#parse(text) as Partial<Accepted> | null;
    if (typeof value?.snapshot !== 'string' || typeof value.highest !== 'number') throw this.#damaged('current.json');
    return { snapshot: value.snapshot, highest: value.highest, held: value.held };
  }

  /**
   * Keeps the snapshot and makes it the one that a restart goes on with. Of what lies there nothing is asked: that it is damaged must not
   * keep rules from running.
   */
  async accept(bundle: Bundle, nowMs: number, { highest, held }: Omit<Accepted, 'snapshot'>): Promise<void> {
    await this.keep(bundle, nowMs);
    const { snapshot } = bundle;
    await this.#write('current.json', JSON.stringify({ snapshot, highest, held }));
    await this.#prune(snapshot);
  }

  /** A snapshot that can be rolled back to, without being the current one. */
  async keep(bundle: Bundle, nowMs: number): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const { dataJson, digests, manifest, cases, site, snapshot } = bundle;
    const wasm = await readFile(join(this.#folder, `${digests.rules}.wasm`)).catch(() => undefined);
    if (wasm === undefined || sha256Hex(wasm) !== digests.rules) await this.#write(`${digests.rules}.wasm`, bundle.wasm);
    const stored: Stored = { schema: 1, dataJson, digests, manifest, cases, site, acceptedAtMs: nowMs };
    await this.#write(`${snapshot}.json`, JSON.stringify(stored));
  }

  /** @throws PolicyError `policy_malformed` when what is kept is not what was accepted */
  async load(snapshot: string): Promise<Bundle> {
    const stored = await this.#stored(snapshot);
    const wasm = await readFile(join(this.#folder, `${stored?.digests.rules}.wasm`)).catch(unlessMissing);
    if (stored === undefined || wasm === undefined) throw this.#damaged(`${snapshot}.json`);
    const { dataJson, digests, manifest, cases, site } = stored;
    const whole = sha256Hex(wasm) === digests.rules && dataDigest(dataJson) === digests.data && snapshotDigest(digests) === snapshot;
    if (!whole) throw this.#damaged(`${snapshot}.json`);
    return { wasm, dataJson, digests, snapshot, manifest, cases, site, signature: undefined };
  }

  /** Newest first. One that is damaged cannot be gone back to, and is left out. */
  async list(): Promise<readonly KnownSnapshot[]> {
    const current = (await this.accepted())?.snapshot;
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
    const rows = await Promise.all(
      names.map(async (name): Promise<KnownSnapshot[]> => {
        const snapshot = name.slice(0, -'.json'.length);
        const stored = await this.#stored(snapshot);
        return stored === undefined
          ? []
          : [{ snapshot, digests: stored.digests, acceptedAtMs: stored.acceptedAtMs, current: snapshot === current }];
      }),
    );
    return rows.flat().sort((a, b) => b.acceptedAtMs - a.acceptedAtMs || (a.snapshot < b.snapshot ? -1 : 1));
  }

  /** The one snapshot that a digest or its beginning names. @throws UsageError `not_found` */
  async find(digest: string): Promise<string> {
    const found = (await this.list()).filter(({ snapshot }) => digest.length >= 8 && snapshot.startsWith(digest));
    if (found.length === 1 && found[0] !== undefined) return found[0].snapshot;
    const message = found.length === 0 ? `No snapshot ${digest} ran here` : `${digest} names ${found.length} snapshots`;
    throw new UsageError('not_found', message, { hint: 'outwork policy status' });
  }

  /** The record of a snapshot; undefined when it is not there, or no record. */
  async #stored(snapshot: string): Promise<Stored | undefined> {
    const text = await readFile(join(this.#folder, `${snapshot}.json`), 'utf8').catch(unlessMissing);
    try {
      const stored = JSON.parse(text ?? '') as Partial<Stored> | null;
      return typeof stored?.dataJson === 'string' && typeof stored.digests?.rules === 'string' ? (stored as Stored) : undefined;
    } catch {
      return undefined;
    }
  }

  async #prune(current: string): Promise<void> {
    const rows = await this.list();
    const old = rows.slice(KEPT).filter(({ snapshot }) => snapshot !== current);
    if (old.length === 0) return;
    for (const { snapshot } of old) await rm(join(this.#folder, `${snapshot}.json`), { force: true });
    const used = new Set((await this.list()).map(({ digests }) => `${digests.rules}.wasm`));
    const unused = (await readdir(this.#folder)).filter((name) => name.endsWith('.wasm') && !used.has(name));
    for (const name of unused) await rm(join(this.#folder, name), { force: true });
  }

  /** A reader sees the old bytes or the new ones. */
  async #write(name: string, body: string | Uint8Array): Promise<void> {
    const path = join(this.#folder, name);
    await writeFile(`${path}.new`, body, { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.#damaged('a record', cause);
    }
  }

  #damaged(what: string, cause?: unknown): PolicyError {
    return new PolicyError('policy_malformed', `${what} in ${this.#folder} is damaged: it is not known which policy was accepted last.`, {
      cause,
      hint: `look at it, then remove ${this.#folder}`,
    });
  }
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
