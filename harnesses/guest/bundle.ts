import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { GUEST_DIGEST } from './identity.ts';

/** Start-up time grows with the file, and so does what a reviewer has to read. */
const MAX_BYTES = 50 * 1024;

export interface GuestBundle {
  readonly file: string;
  /** What the guest will say of itself in `hello`: the digest of the file with zeros in its place. */
  readonly sha256: string;
}

/** Bundles the guest to one minified CommonJS file of at most 50 KB that needs Node built-ins only. @throws Error when it is larger */
export async function buildGuest({ outFile }: { readonly outFile: string }): Promise<GuestBundle & { readonly bytes: number }> {
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({ input: join(import.meta.dirname, 'main.ts'), platform: 'node', logLevel: 'warn' });
  const { output } = await bundle.generate({ format: 'cjs', minify: true, codeSplitting: false });
  await bundle.close();
  const [chunk, ...rest] = output;
  if (rest.length > 0) throw new Error('The guest bundle has more than one file');
  const foreign = chunk.imports.filter((name) => !name.startsWith('node:'));
  if (foreign.length > 0) throw new Error(`The guest bundle needs more than Node: ${foreign.join(', ')}`);
  const { code, digest } = stamped(chunk.code);
  const bytes = Buffer.byteLength(code);
  if (bytes > MAX_BYTES) throw new Error(`The guest bundle has ${bytes} bytes, at most ${MAX_BYTES} are allowed`);
  mkdirSync(dirname(outFile), { recursive: true });
  // Whoever starts a sandbox meanwhile sees the old file or the new one, whole. Tools read it too: the helper runs as one.
  const temporary = join(dirname(outFile), `.${basename(outFile)}-${process.pid}-${Date.now()}`);
  writeFileSync(temporary, code, { mode: 0o644 });
  renameSync(temporary, outFile);
  return { file: outFile, sha256: digest, bytes };
}

/**
 * The guest's file. In a checkout it is built again when its sources have changed; in an installed package it lies beside this module.
 *
 * @throws Error when an installed package lacks it
 */
export async function ensureGuest(): Promise<GuestBundle> {
  const shipped = join(import.meta.dirname, 'guest.cjs');
  if (!import.meta.filename.endsWith('.ts')) {
    if (!existsSync(shipped)) throw new Error(`The package lacks ${shipped}`);
    return { file: shipped, sha256: digestIn(readFileSync(shipped, 'utf8')) };
  }
  const file = resolve(import.meta.dirname, '../../build/guest.cjs');
  const stamp = `${file}.sources`;
  const sources = sourcesDigest();
  if (existsSync(file) && existsSync(stamp)) {
    const code = readFileSync(file, 'utf8');
    if (readFileSync(stamp, 'utf8') === `${sources} ${sha256(code)}\n`) return { file, sha256: digestIn(code) };
  }
  const built = await buildGuest({ outFile: file });
  writeFileSync(stamp, `${sources} ${sha256(readFileSync(file))}\n`);
  return { file, sha256: built.sha256 };
}

/** Digest of all that the bundle is made of. */
function sourcesDigest(): string {
  const hash = createHash('sha256');
  const root = resolve(import.meta.dirname, '..');
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  for (const name of names.sort())
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(root, name)))
      .update('\0');
  return hash.digest('hex');
}

/** The bundle with its own digest written in: a guest that had to hash its file would start 5 ms later. */
function stamped(blank: string): { code: string; digest: string } {
  if (blank.split(GUEST_DIGEST).length !== 2) throw new Error('The guest bundle has not one place for its digest');
  const digest = sha256(blank);
  return { code: blank.replace(GUEST_DIGEST, digest), digest };
}

/** @throws Error when the file does not have the digest that it states */
function digestIn(code: string): string {
  const stated = /\b[0-9a-f]{64}\b/.exec(code)?.[0] ?? '';
  if (sha256(code.replace(stated, GUEST_DIGEST)) !== stated) throw new Error('The guest bundle is damaged: build it again');
  return stated;
}

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

if (import.meta.main) {
  const { file, sha256: digest, bytes } = await buildGuest({ outFile: resolve(import.meta.dirname, '../../build/guest.cjs') });
  process.stdout.write(`${file} ${bytes} bytes sha256:${digest}\n`);
}
