import { accessSync, constants } from 'node:fs';
import type { ToolCommand } from '../../core/ports/placement.ts';
import { GuestError } from './errors.ts';
import type { GuestSettings } from './settings.ts';

/** A command ready to be spawned. */
export interface CommandPlan {
  readonly argv: readonly [string, ...string[]];
  readonly env: { readonly [name: string]: string };
  readonly cwd: string;
  /** Set when a shell changes the directory first: what it prints before any word of the tool, when the directory is no good. */
  readonly cwdFault: string | undefined;
}

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Changes the directory as the tool uid, in the process that becomes the tool, and looks where it really is. The executor could not: it
 * has no rights over a tool's private directories. The shell itself sees none of the tool's variables, some of which it would change
 * (IFS, PWD, OPTIND): `env` sets them after it.
 */
const ENTER = `cd -P -- "$1" 2>/dev/null || { echo "$3:missing" >&2; exit 126; }
case $PWD/ in "$2"/*) ;; *) echo "$3:outside" >&2; exit 126 ;; esac
shift 3
exec env -i "$@"`;

/** `env` would take a program of such a name for a variable; what stands before it starts it as it is. */
const programFor = (program: string): readonly string[] => (program.includes('=') ? ['nice', '-n', '0', '--', program] : [program]);

/** Checks a command and builds its whole environment. @throws GuestError `invalid_arguments` `path_outside_workspace` */
export function planCommand(command: ToolCommand, settings: GuestSettings): CommandPlan {
  const [program, ...args] = command.argv;
  if (program === undefined || program === '') throw invalid('argv: empty');
  if (command.argv.some((item) => item.includes('\0'))) throw invalid('argv: holds a NUL');
  const env = environment(command.env ?? {}, settings);
  const cwd = relativeDirectory(command.cwd ?? '.');
  if (cwd === '' && canEnter(settings.workspace)) return { argv: [program, ...args], env, cwd: settings.workspace, cwdFault: undefined };
  const nonce = `outwork-${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}`;
  const { workspace } = settings;
  return {
    argv: ['/bin/sh', '-c', ENTER, 'sh', `${workspace}/${cwd}`, workspace, nonce, ...assigned(env), ...programFor(program), ...args],
    env: { PATH: settings.path },
    cwd: '/',
    cwdFault: nonce,
  };
}

const assigned = (env: Record<string, string>): readonly string[] => Object.entries(env).map(([name, value]) => `${name}=${value}`);

/** What the shell said when it could not enter the directory; undefined when the tool ran. */
export function cwdFault(plan: CommandPlan, cwd: string | undefined, exitCode: number | null, stderr: string): GuestError | undefined {
  if (plan.cwdFault === undefined || exitCode !== 126 || !stderr.startsWith(`${plan.cwdFault}:`)) return undefined;
  return stderr.startsWith(`${plan.cwdFault}:outside`)
    ? new GuestError('path_outside_workspace', `cwd: ${cwd} leads out of the workspace`)
    : new GuestError('file_not_found', `cwd: ${cwd ?? '.'} is no directory that can be entered`);
}

function environment(own: { readonly [name: string]: string }, { home, path }: GuestSettings): Record<string, string> {
  for (const [name, value] of Object.entries(own)) {
    if (!ENV_NAME.test(name)) throw invalid(`env: ${JSON.stringify(name)} is no name of a variable`);
    if (value.includes('\0')) throw invalid(`env.${name}: holds a NUL`);
  }
  return {
    PATH: [...HOME_PROGRAMS.map((dir) => `${home}/${dir}`), path].join(':'),
    HOME: home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    USER: 'agent',
    TMPDIR: '/tmp',
    ...Object.fromEntries(Object.entries(HOME_PLACES).map(([name, dir]) => [name, `${home}/${dir}`])),
    // Debian's pip installs nothing for a user without it; it touches nothing but HOME.
    PIP_BREAK_SYSTEM_PACKAGES: '1',
    ...own,
  };
}

/** Where package managers put programs that their user installs: HOME has a root of its own beside the workspace and outlives sandboxes. */
const HOME_PROGRAMS = ['.local/bin', '.cargo/bin', 'go/bin'];

/** Variables by which package managers find their prefix and their cache below HOME. */
const HOME_PLACES: Readonly<Record<string, string>> = {
  XDG_CACHE_HOME: '.cache',
  NPM_CONFIG_PREFIX: '.local',
  NPM_CONFIG_CACHE: '.cache/npm',
  PYTHONUSERBASE: '.local',
  CARGO_HOME: '.cargo',
  RUSTUP_HOME: '.rustup',
  GOPATH: 'go',
};

/** `''` is the workspace itself. */
function relativeDirectory(cwd: string): string {
  if (cwd.includes('\0')) throw invalid('cwd: holds a NUL');
  const parts = cwd.split('/').filter((part) => part !== '' && part !== '.');
  if (cwd.startsWith('/') || parts.includes('..')) throw new GuestError('path_outside_workspace', `cwd: ${cwd} is not below the workspace`);
  return parts.join('/');
}

/** False when its user has closed the workspace to others: then only the tool uid can. */
function canEnter(directory: string): boolean {
  try {
    accessSync(directory, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const invalid = (message: string): GuestError => new GuestError('invalid_arguments', message);
