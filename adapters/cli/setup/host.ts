import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Environment } from '../../config/file.ts';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The machine as set-up sees it; tests stand in for it. */
export interface SetupHost {
  readonly env: Environment;
  /** Absolute path of a program on PATH; undefined when there is none. */
  which(program: string): string | undefined;
  run(command: string, args: readonly string[]): Promise<CommandResult>;
  /** What to put before a command that only root may run: nothing for root, passwordless sudo, or undefined when neither is there. */
  privilege(): Promise<readonly string[] | undefined>;
}

/** Administrators' programs are not on every user's PATH, and neither is Go where its own instructions put it. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin', '/usr/bin', '/bin', '/usr/local/go/bin'];
const OUTPUT_BYTES = 16 * 1024 * 1024;

export function machine(env: Environment): SetupHost {
  const folders = [...(env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/')), ...SYSTEM_FOLDERS];
  const path = folders.join(delimiter);
  const run = (command: string, args: readonly string[]): Promise<CommandResult> =>
    new Promise((resolve) => {
      const options = { env: { ...env, PATH: path, DEBIAN_FRONTEND: 'noninteractive' }, maxBuffer: OUTPUT_BYTES };
      const child = execFile(command, args, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
        resolve({ code, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
      });
      // A package script that asks something gets an end of file, not our terminal.
      child.stdin?.end();
    });
  const which = (program: string) => folders.map((folder) => join(folder, program)).find(isProgram);
  const privilege = async () => {
    if (process.geteuid?.() === 0) return [];
    const sudo = which('sudo');
    return sudo !== undefined && (await run(sudo, ['-n', 'true'])).code === 0 ? [sudo, '-n'] : undefined;
  };
  return { env: { ...env, PATH: path }, which, run, privilege };
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
