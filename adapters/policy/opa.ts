import { execFile } from 'node:child_process';
import { access, chmod, constants, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { PrerequisiteError } from '../../core/errors.ts';
import { type Download, download } from '../download.ts';
import { syncPath } from '../sync-path.ts';

/** The one version whose compiler output, formatting and answers this project is tested with. */
export const OPA_VERSION = '1.22.3';

export interface OpaOptions {
  /** Default `process.env`; `PATH`, `XDG_CACHE_HOME` and `HOME` are read. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface OpaResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Path of OPA {@link OPA_VERSION}: on PATH, else in the user's cache. Only editing policies needs it.
 *
 * @throws PrerequisiteError `policy_tool_missing`
 */
export async function findOpa(options: OpaOptions = {}): Promise<string> {
  const env = options.env ?? process.env;
  for (const directory of (env.PATH ?? '').split(delimiter).filter((entry) => entry !== '')) {
    if (await isPinnedOpa(join(directory, 'opa'))) return join(directory, 'opa');
  }
  const cached = cachedOpa(env);
  if (await isPinnedOpa(cached)) return cached;
  throw new PrerequisiteError('policy_tool_missing', `OPA ${OPA_VERSION} is neither on PATH nor at ${cached}.`, {
    hint: 'outwork setup --full',
  });
}

/**
 * Puts OPA {@link OPA_VERSION} into the user's cache: built with the Go toolchain, else downloaded where configuration says from where. It is
 * made beside its place, has said its version before it is moved there, and a failure leaves nothing. Does nothing when OPA is found already.
 *
 * @returns its path
 * @throws PrerequisiteError `download_failed` `digest_mismatch`; `policy_tool_missing` when there is no way, the build fails, or what came
 * does not run or is another version
 */
export async function installOpa(
  log: (line: string) => void,
  options: OpaOptions & { readonly download?: Download | undefined } = {},
): Promise<string> {
  const env = options.env ?? process.env;
  try {
    const found = await findOpa(options);
    log(`OPA ${OPA_VERSION} is at ${found}`);
    return found;
  } catch (error) {
    if (!(error instanceof PrerequisiteError)) throw error;
  }
  const target = cachedOpa(env);
  const folder = dirname(target);
  await mkdir(dirname(folder), { recursive: true });
  const draft = await mkdtemp(`${folder}.draft-`);
  try {
    await makeOpa(draft, log, env, options.download);
    // What is there was looked at and is no OPA of this version.
    await rm(folder, { recursive: true, force: true });
    await chmod(draft, 0o755);
    await syncPath(draft);
    await rename(draft, folder);
    await syncPath(dirname(folder));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  log(`OPA ${OPA_VERSION} is at ${target}`);
  return target;
}

async function makeOpa(draft: string, log: (line: string) => void, env: NodeJS.ProcessEnv, from: Download | undefined): Promise<void> {
  const file = join(draft, 'opa');
  try {
    await buildOpa(file, log, env);
  } catch (error) {
    if (from === undefined) throw error;
    log(`${(error as Error).message}; fetching it from ${from.url}`);
    await rm(file, { force: true });
    await download(from, file);
    await chmod(file, 0o755);
    if (!(await isPinnedOpa(file))) {
      throw new PrerequisiteError(
        'policy_tool_missing',
        `What ${from.url} gave has the expected digest and is no OPA ${OPA_VERSION} that runs here.`,
        {
          hint: `policy.opa: the address and the digest of OPA ${OPA_VERSION} for ${process.platform} ${process.arch}`,
        },
      );
    }
  }
  await syncPath(file);
}

async function buildOpa(file: string, log: (line: string) => void, env: NodeJS.ProcessEnv): Promise<void> {
  const module = `github.com/open-policy-agent/opa@v${OPA_VERSION}`;
  log(`Building OPA ${OPA_VERSION}; this takes minutes`);
  const built = await run('go', ['install', module], { env: { ...env, GOBIN: dirname(file), CGO_ENABLED: '0' } });
  if (built.code === 0 && (await isPinnedOpa(file))) return;
  const why = built.code === 0 ? 'what was built is another version or does not run' : lastLine(built.stderr) || 'no Go toolchain';
  throw new PrerequisiteError('policy_tool_missing', `OPA ${OPA_VERSION} could not be built: ${why}`, {
    hint: `Install Go 1.26 or newer, then: GOBIN=${dirname(cachedOpa(env))} go install ${module}; or say in the configuration where to fetch it (policy.opa)`,
  });
}

/** Runs OPA to its end; a non-zero exit is a result, not an error. */
export const runOpa = (opa: string, args: readonly string[], cwd: string): Promise<OpaResult> => run(opa, args, { cwd });

const cachedOpa = (env: NodeJS.ProcessEnv): string =>
  join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'outwork', `opa-${OPA_VERSION}`, 'opa');

async function isPinnedOpa(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
  } catch {
    return false;
  }
  const { code, stdout } = await run(path, ['version'], {});
  return code === 0 && stdout.split('\n').includes(`Version: ${OPA_VERSION}`);
}

function run(command: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv }): Promise<OpaResult> {
  return new Promise((resolve) => {
    execFile(command, args, { ...options, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) return resolve({ code: 0, stdout, stderr });
      // Without an exit code it did not run at all.
      if (typeof error.code === 'number') return resolve({ code: error.code, stdout, stderr });
      resolve({ code: 127, stdout, stderr: error.message });
    });
  });
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? '';
