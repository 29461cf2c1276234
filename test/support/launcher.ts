import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The command line as a program: a script for this Node. */
export const LAUNCHER = join(import.meta.dirname, '..', '..', 'adapters', 'cli', 'launcher.js');

type Env = Readonly<Record<string, string>>;

/** A directory of the test's own to work in and as HOME; of this process's environment the PATH alone. */
export const within = (dir: string, env: Env = {}) => ({
  cwd: dir,
  env: { PATH: process.env.PATH ?? '', HOME: dir, ...env },
  encoding: 'utf8' as const,
});

/** One command line, run to its end as a program. */
export const runOutwork = (dir: string, args: readonly string[], env?: Env) =>
  spawnSync(process.execPath, [LAUNCHER, ...args], within(dir, env));

/** A command line that runs as a program. */
export interface RunningOutwork {
  readonly child: ChildProcessWithoutNullStreams;
  readonly exit: Promise<number | null>;
  /** What it has printed so far. */
  readonly text: { readonly stdout: string; readonly stderr: string };
  /** Resolves with the first match in what it prints. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
}

export function startOutwork(dir: string, args: readonly string[], env?: Env): RunningOutwork {
  const child = spawn(process.execPath, [LAUNCHER, ...args], within(dir, env));
  const text = { stdout: '', stderr: '' };
  const waiting = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
      for (const check of waiting) check();
    });
  }
  const exit = once(child, 'close').then(([code]) => code as number | null);
  const prints = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const check = () => {
        const found = pattern.exec(`${text.stdout}\n${text.stderr}`);
        if (found === null) return;
        waiting.delete(check);
        resolve(found);
      };
      waiting.add(check);
      check();
      void exit.then(() => reject(new Error(`ended without ${pattern}: ${text.stderr}`)));
    });
  return { child, exit, text, prints };
}
