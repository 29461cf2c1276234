import { posix } from 'node:path';
import type { Reason, ShellExecArgs } from '../capability/types.ts';
import { type Interpreter, interpreterOf, LAUNCHERS } from './interpreters.ts';

/** An argument that names the program text a command runs. */
export interface Reference {
  /** Index in argv. */
  readonly argument: number;
  /** Relative to the workspace. */
  readonly path: string;
}

export interface References {
  readonly files: readonly Reference[];
  /** Text of an argument is run as a program: it is shown, and what it starts in turn is not pinned. */
  readonly codeInArgument: boolean;
}

const WORKSPACE = '/workspace';
/** Read-only in every sandbox: nothing there changes between an answer and the command. */
const UNCHANGING = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib32/', '/lib64/', '/libx32/', '/opt/outwork/'];

/**
 * The files of the workspace that a command runs: its program when it is named by a path, or the script of an interpreter, also behind a
 * launcher such as `env`. What cannot be told is a reason not to ask at all: nobody can approve what may be anything (`approval_unclear`).
 */
export function referencesOf(args: Pick<ShellExecArgs, 'argv' | 'cwd'>): References | Reason {
  const at = behindLaunchers(args.argv);
  if (typeof at !== 'number') return at;
  const program = args.argv[at];
  if (program === undefined) return { files: [], codeInArgument: false };
  if (program.includes('/')) {
    const found = pathOf(program, args.cwd);
    if (typeof found !== 'string' && found !== undefined) return found;
    if (found !== undefined) return { files: [{ argument: at, path: found }], codeInArgument: false };
  }
  const interpreter = interpreterOf(posix.basename(program));
  return interpreter === undefined ? { files: [], codeInArgument: false } : scriptOf(interpreter, args, at);
}

/** Index of the program that is started in the end. */
function behindLaunchers(argv: readonly string[]): number | Reason {
  for (let at = 0; ; ) {
    const launcher = LAUNCHERS[posix.basename(argv[at] ?? '')];
    if (launcher === undefined || (argv[at]?.includes('/') && !isUnchanging(argv[at] ?? ''))) return at;
    if (launcher === 'unclear') return unclear(`${argv[at]} starts programs, and which one cannot be told`);
    at += 1;
    const option = argv[at];
    if (option?.startsWith('-')) return unclear(`${argv[at - 1]} has options (${option}), and what it starts cannot be told`);
    if (launcher === 'assignments') while (/^[A-Za-z_][A-Za-z0-9_]*=/.test(argv[at] ?? '')) at += 1;
    if (launcher === 'duration') at += 1;
  }
}

function scriptOf(interpreter: Interpreter, { argv, cwd }: Pick<ShellExecArgs, 'argv' | 'cwd'>, program: number): References | Reason {
  for (let at = program + 1; at < argv.length; at += 1) {
    const arg = argv[at] ?? '';
    if (arg === '-') return { files: [], codeInArgument: false };
    if (!/^[-+]./.test(arg) || arg === '--') {
      const script = arg === '--' ? at + 1 : at;
      const path = pathOf(argv[script] ?? '', cwd);
      if (argv[script] === undefined || path === undefined) return { files: [], codeInArgument: false };
      return typeof path === 'string' ? { files: [{ argument: script, path }], codeInArgument: false } : path;
    }
    if (interpreter.inline.test(arg)) return { files: [], codeInArgument: true };
    if (!interpreter.plain.test(arg)) return unclear(`${argv[program]} has an option (${arg}) that may load another file`);
  }
  return { files: [], codeInArgument: false };
}

/** Path below the workspace; undefined when it is where nothing changes; a reason when it is anywhere else. */
function pathOf(name: string, cwd: string | undefined): string | undefined | Reason {
  const full = posix.normalize(name.startsWith('/') ? name : posix.join(WORKSPACE, cwd ?? '.', name));
  if (full.startsWith(`${WORKSPACE}/`)) return full.slice(WORKSPACE.length + 1);
  if (isUnchanging(full)) return undefined;
  return unclear(`${name} is not in the workspace, and only what is there can be kept until it runs`);
}

const isUnchanging = (path: string): boolean => UNCHANGING.some((prefix) => posix.normalize(path).startsWith(prefix));
const unclear = (message: string): Reason => ({ code: 'approval_unclear', message });
