import { openAdministration } from '../../adapters/administration.ts';
import type { Io } from '../../adapters/cli/io.ts';
import { main } from '../../adapters/cli/main.ts';

/** What one command line did. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command line to its end in this process, in `dir`, over the real rows; a kernel only where one is given. */
export async function commandLine(dir: string, args: readonly string[], createKernel?: Io['createKernel']): Promise<CommandResult> {
  const text = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({
    write(chunk: string) {
      text[name] += chunk;
    },
  });
  const code = await main(args, {
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    env: { HOME: dir, PATH: process.env.PATH },
    cwd: dir,
    readStdin: async () => '',
    onInterrupt: () => () => undefined,
    onStdoutFailed: () => undefined,
    stdoutTaken: async () => undefined,
    now: () => Date.now(),
    exit: () => undefined,
    createKernel: createKernel ?? (() => Promise.reject(new Error('no kernel is wanted here'))),
    openRows: openAdministration,
  });
  return { code, ...text };
}
