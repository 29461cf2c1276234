import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Another process on the same files, told what to do by its script's arguments; what it prints is read line by line. */
export interface Child {
  readonly process: ChildProcess;
  readonly lines: AsyncIterableIterator<string>;
  /** SIGKILL, and gone when it resolves. */
  kill(): Promise<void>;
  /** Resolves with the exit code when it ends by itself. */
  ended(): Promise<number | null>;
}

export function startChild(script: string, args: readonly string[]): Child {
  const file = fileURLToPath(new URL(`./${script}`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  return {
    process: child,
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async ended() {
      return ((await exited) as [number | null])[0];
    },
  };
}

/** The next line. @throws when the child has closed its output */
export async function lineOf(child: Child): Promise<string> {
  const { value, done } = await child.lines.next();
  if (done === true) throw new Error('the process printed nothing more');
  return value as string;
}
