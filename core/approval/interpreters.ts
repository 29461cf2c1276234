/** How an interpreter reads its command line up to its script. */
export interface Interpreter {
  /** Options after which an argument, not a file, is the program. */
  readonly inline: RegExp;
  /** Options that take no further argument and load nothing. Any other makes the script a guess. */
  readonly plain: RegExp;
}

const SHELL: Interpreter = { inline: /^-[a-zA-Z]*c[a-zA-Z]*$/, plain: /^[-+][abefhklmnpruvxBCEHPT]+$|^--(norc|noprofile|posix)$/ };
const PYTHON: Interpreter = { inline: /^-[bBdEiIOPqsSuvx]*[cm]/, plain: /^-[bBdEIOPqsSuv]+$/ };
const NODE: Interpreter = {
  inline: /^(-e|-p|-pe|--eval|--print)(=|$)/,
  plain: /^--(test|no-warnings|trace-warnings|enable-source-maps|max-old-space-size=\d+)$/,
};
const PERL: Interpreter = { inline: /^-[a-zA-Z0]*[eE]/, plain: /^-[cTtwWXnpals]+$/ };
const RUBY: Interpreter = { inline: /^-[a-zA-Z]*e/, plain: /^-[cwvWnpal]+$|^--(disable-gems|yjit)$/ };
const PHP: Interpreter = { inline: /^-[rRB]/, plain: /^-[nq]+$/ };
const LUA: Interpreter = { inline: /^-e/, plain: /^-[EvW]+$/ };
const R: Interpreter = { inline: /^-e$/, plain: /^--(vanilla|no-save|no-restore|slave|quiet)$/ };

const BY_NAME: Readonly<Record<string, Interpreter>> = {
  ...{ sh: SHELL, ash: SHELL, bash: SHELL, dash: SHELL, ksh: SHELL, mksh: SHELL, rbash: SHELL, zsh: SHELL, fish: SHELL },
  ...{ python: PYTHON, pypy: PYTHON, node: NODE, nodejs: NODE, tsx: NODE, perl: PERL, ruby: RUBY, php: PHP },
  ...{ lua: LUA, luajit: LUA, Rscript: R },
};

/** By the base name of a program, with or without a version: `python3.12` is `python`. */
export function interpreterOf(name: string): Interpreter | undefined {
  const plain = name.replace(/-?\d+(\.\d+)*$/, '');
  if (Object.hasOwn(BY_NAME, name)) return BY_NAME[name];
  return Object.hasOwn(BY_NAME, plain) ? BY_NAME[plain] : undefined;
}

/** Programs that only start another, and what stands before its name; `unclear` where that cannot be told by looking. */
export const LAUNCHERS: Readonly<Record<string, 'nothing' | 'assignments' | 'duration' | 'unclear'>> = Object.assign(Object.create(null), {
  ...{ env: 'assignments', timeout: 'duration' },
  ...{ nice: 'nothing', nohup: 'nothing', setsid: 'nothing', time: 'nothing', busybox: 'nothing', toybox: 'nothing' },
  ...Object.fromEntries(
    [
      ...['chroot', 'chrt', 'doas', 'flock', 'ionice', 'ltrace', 'nsenter', 'parallel', 'prlimit', 'runuser', 'script', 'setarch'],
      ...['setpriv', 'stdbuf', 'strace', 'su', 'sudo', 'taskset', 'unbuffer', 'unshare', 'valgrind', 'watch', 'xargs'],
    ].map((name) => [name, 'unclear']),
  ),
});
