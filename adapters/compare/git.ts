import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PrerequisiteError } from '../../core/errors.ts';

const run = promisify(execFile);

/**
 * Runs git on the host in `directory`; gives its output without the last line break. No hook, no file system monitor and no pager runs, and
 * no lock is taken for the mere reading.
 *
 * @throws PrerequisiteError `component_missing` when git is not installed; a plain error when git fails
 */
export async function runGit(directory: string, args: readonly string[]): Promise<string> {
  const quiet = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', '--no-pager', '-C', directory];
  try {
    const { stdout } = await run('git', [...quiet, ...args], {
      env: { ...process.env, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0' },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout.replace(/\n$/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new PrerequisiteError('component_missing', 'git is not installed', { cause: error, hint: 'install the package git' });
  }
}
