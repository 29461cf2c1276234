import { execFile } from 'node:child_process';
import { access, constants, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PrerequisiteError } from '../../core/errors.ts';

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
 * Puts OPA {@link OPA_VERSION} into the user's cache with the Go toolchain; does nothing when it can be found already.
 *
 * @returns its path
 * @throws PrerequisiteError `policy_tool_missing` when there is no Go toolchain or the build fails
 */
export async function installOpa(log: (line: string) => void, options: OpaOptions = {}): Promise<string> {
  const env = options.env ?? process.env;
  try {
    const found = await findOpa(options);
    log(`OPA ${OPA_VERSION} is at ${found}`);
    return found;
  } catch (error) {
    if (!(error instanceof PrerequisiteError)) throw error;
  }
  const target = cachedOpa(env);
  const directory = join(target, '..');
  await mkdir(directory, { recursive: true });
  log(`Building OPA ${OPA_VERSION} into ${directory}; this takes minutes`);
  const module = `github.com/open-policy-agent/opa@v${OPA_VERSION}`;
  const built = await run('go', ['install', module], { env: { ...env, GOBIN: directory, CGO_ENABLED: '0' } });
  if (built.code !== 0 || !(await isPinnedOpa(target))) {
    throw new PrerequisiteError(
      'policy_tool_missing',
      `OPA ${OPA_VERSION} could not be built: ${lastLine(built.stderr) || 'no Go toolchain'}`,
      {
        hint: `Install Go 1.26 or newer, then: GOBIN=${directory} go install ${module}`,
      },
    );
  }
  log(`OPA ${OPA_VERSION} is at ${target}`);
  return target;
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
