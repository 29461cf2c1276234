import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CompactSign, compactVerify, importPKCS8, importSPKI } from 'jose';
import { PolicyError, UsageError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json.ts';
import { type Bundle, loadBundle } from './bundle.ts';
import { distDir } from './sources.ts';

const ALGORITHM = 'EdDSA';

/** What is signed: rules, data and version, by their digests. */
const signedText = ({ digests, snapshot }: Pick<Bundle, 'digests' | 'snapshot'>): string =>
  canonicalJson({ purpose: 'outwork.policy-release', schema: 1, ...digests, snapshot });

/**
 * Signs what lies below the bundle root, as built, and writes `dist/release.jws`.
 *
 * @param keyFile - Ed25519 private key, PKCS#8 PEM
 * @throws UsageError `invalid_argument` for a key that is none; PolicyError as `loadBundle`
 */
export async function signRelease(dir: string, siteDir: string | undefined, keyFile: string): Promise<Bundle> {
  const bundle = await loadBundle(dir, siteDir);
  const key = await readKey(keyFile, importPKCS8);
  const jws = await new CompactSign(new TextEncoder().encode(signedText(bundle))).setProtectedHeader({ alg: ALGORITHM }).sign(key);
  const path = join(distDir(dir, siteDir), 'release.jws');
  await writeFile(`${path}.new`, `${jws}\n`);
  await rename(`${path}.new`, path);
  return bundle;
}

/**
 * Holds a bundle to its signature.
 *
 * @param publicKeyFile - Ed25519 public key, SPKI PEM
 * @throws PolicyError `policy_unsigned` when it carries none, another key's, or one over other rules, data or version
 */
export async function verifyRelease(bundle: Bundle, publicKeyFile: string): Promise<void> {
  if (bundle.signature === undefined) throw unsigned('Rules and data carry no signature, and this kernel takes signed ones only.');
  const key = await readKey(publicKeyFile, importSPKI);
  try {
    const { payload } = await compactVerify(bundle.signature, key, { algorithms: [ALGORITHM] });
    if (new TextDecoder().decode(payload) === signedText(bundle)) return;
  } catch (cause) {
    throw unsigned('The signature of rules and data is not one of the configured key.', cause);
  }
  throw unsigned('The signature is over other rules, other data or another version than these.');
}

async function readKey(file: string, load: typeof importSPKI | typeof importPKCS8) {
  try {
    return await load(await readFile(file, 'utf8'), ALGORITHM);
  } catch (cause) {
    throw new UsageError('invalid_argument', `${file} is no Ed25519 key in PEM: ${(cause as Error).message}`, { cause });
  }
}

const unsigned = (message: string, cause?: unknown): PolicyError =>
  new PolicyError('policy_unsigned', message, { cause, hint: 'outwork policy build --sign KEY' });
