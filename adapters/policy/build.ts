import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { PolicyError } from '../../core/errors.ts';
import { sha256Hex } from '../../core/json.ts';
import { CONTRACT_VERSION } from '../../core/policy/contracts.ts';
import { ADMITTED_BUILTINS } from './builtins.ts';
import { refuseForeignPackages } from './conventions.ts';
import { hostFunctions } from './host-functions.ts';
import { writeInputSchemas } from './input-schemas.ts';
import { findOpa, OPA_VERSION, runOpa } from './opa.ts';
import { parseRules, ruleNotes } from './rule-notes.ts';
import { loadSettings } from './settings.ts';
import { distDir, ENTRYPOINT, listRules, listSiteRules, type Manifest, SHIPPED_DATA, sourceDigest } from './sources.ts';

/**
 * Compiles the rules below `dir` to `dist/policy.wasm` and writes `dist/manifest.json`. Same rules, same bytes.
 * Only built-in functions that are part of the module are admitted; both the compiler and the finished module are asked.
 * With `siteDir` the packages `site.*` below it are compiled in, and `dist/` is there.
 *
 * @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_build_failed` with the compiler's own words
 */
export async function buildPolicy(dir: string, siteDir?: string): Promise<Manifest> {
  const opa = await findOpa();
  const work = await mkdtemp(join(tmpdir(), 'outwork-policy-'));
  try {
    const capabilities = join(work, 'capabilities.json');
    await writeFile(capabilities, await admittedCapabilities(opa, dir));
    await writeInputSchemas(dir);
    const files = await parseRules(opa, dir, siteDir).catch((error) => {
      throw failed((error as Error).message);
    });
    refuseForeignPackages(files);
    const sources = await sourceDigest(dir, siteDir);
    const archive = join(work, 'bundle.tar.gz');
    const rules = [...(await listRules(dir)), ...(await sitePaths(dir, siteDir))];
    const args = ['build', '--target', 'wasm', '--entrypoint', ENTRYPOINT, '--capabilities', capabilities, '--output', archive, ...rules];
    const built = await runOpa(opa, args, dir);
    if (built.code !== 0) throw failed((built.stderr || built.stdout).replace(/^error: /, ''));
    const wasm = fileInTar(gunzipSync(await readFile(archive)), '/policy.wasm');
    refuseHostFunctions(wasm);
    const manifest: Manifest = {
      schema: 1,
      opa: OPA_VERSION,
      contract: CONTRACT_VERSION,
      entrypoints: [ENTRYPOINT],
      sources,
      wasm: sha256Hex(wasm),
      rules: ruleNotes(files),
    };
    await writeDist(distDir(dir, siteDir), {
      'policy.wasm': wasm,
      'manifest.json': `${JSON.stringify(manifest, null, 2)}\n`,
      ...(siteDir === undefined ? { [SHIPPED_DATA]: `${await dataText(dir)}\n` } : {}),
    });
    return manifest;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The data beside which the rules were built. A bundle without data has none. */
const dataText = async (dir: string): Promise<string> => JSON.stringify(JSON.parse((await loadSettings(dir)).json), null, 1);

/** As the compiler takes them: from the bundle root. */
const sitePaths = async (dir: string, siteDir: string | undefined): Promise<readonly string[]> =>
  siteDir === undefined ? [] : (await listSiteRules(siteDir)).map((path) => relative(dir, join(siteDir, path)));

/** The compiler's own list, cut down to what is admitted. @returns JSON for `--capabilities` */
export async function admittedCapabilities(opa: string, cwd: string): Promise<string> {
  const { code, stdout, stderr } = await runOpa(opa, ['capabilities', '--current'], cwd);
  if (code !== 0) throw failed(stderr);
  const all = JSON.parse(stdout) as { builtins: { name: string }[] };
  const admitted = new Set(ADMITTED_BUILTINS);
  return JSON.stringify({ ...all, builtins: all.builtins.filter((builtin) => admitted.has(builtin.name)), allow_net: [] });
}

/** The second check: a module that names any function of its host is refused, whatever the compiler thought of it. */
function refuseHostFunctions(wasm: Uint8Array<ArrayBuffer>): void {
  const wanted = hostFunctions(new WebAssembly.Module(wasm));
  if (wanted.length > 0) throw failed(`The module needs functions of its host: ${wanted.join(', ')}`);
}

/** Bytes of one member of a tar archive (POSIX ustar: 512-byte headers, name at 0, octal size at 124). */
function fileInTar(tar: Buffer, name: string): Uint8Array<ArrayBuffer> {
  for (let at = 0; at + 512 <= tar.length; ) {
    const field = (from: number, to: number) => tar.toString('utf8', at + from, at + to).split('\0', 1)[0] ?? '';
    const size = Number.parseInt(field(124, 136), 8) || 0;
    if (field(0, 100) === name) return Uint8Array.from(tar.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw failed(`The compiler's archive holds no ${name}.`);
}

/** Of each file a reader sees the old bytes or the new ones. */
async function writeDist(dist: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  try {
    await mkdir(dist, { recursive: true });
    for (const [name, body] of Object.entries(files)) {
      await writeFile(join(dist, `${name}.new`), body);
      await rename(join(dist, `${name}.new`), join(dist, name));
    }
  } catch (error) {
    throw failed(`${dist} cannot be written: ${(error as Error).message}`);
  }
}

const failed = (message: string): PolicyError => new PolicyError('policy_build_failed', message.trim());
