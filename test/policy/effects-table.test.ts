import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createPolicyEngine, type ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { POLL_MS } from './support/engine.ts';
import { callInput, shellArgs } from './support/inputs.ts';
import { SHIPPED } from './support/policy-dir.ts';

/** `data/effects.yaml` as it is shipped, asked through the compiled rules. */
let engine: ReloadingPolicyEngine;
beforeAll(async () => {
  engine = await createPolicyEngine({ dir: SHIPPED, clock: systemClock, pollMs: POLL_MS, onEvent: () => undefined });
});
afterAll(() => engine.close());

function classOf(argv: readonly string[]): string {
  const { effect, obligations } = engine.decide(callInput({ args: shellArgs(argv) }));
  expect(effect).toBe('allow');
  const lowered = obligations.find(({ kind }) => kind === 'effect_class');
  return lowered?.kind === 'effect_class' ? lowered.class : 'once';
}

/** What each reviewed program may be asked without an effect that matters twice. */
const LOWERED: readonly string[] = [
  'cat -n a',
  'head -n 5 a',
  'tail -n 5 a',
  'wc -l a',
  'ls -la',
  'pwd',
  'grep -rn needle .',
  'rg -n needle src',
  'find . -name x',
  'git log --oneline',
  'git show --stat',
  'git ls-files',
  'git rev-parse HEAD',
  'git grep -n -I -i -E todo',
  'git cat-file -p HEAD',
  'git describe --tags',
  'git branch -a',
  'git branch --show-current',
  'git tag -l',
  'git remote -v',
  'git stash list',
  'sort -u a',
  'sort -k 2 -n a',
  'uniq -c',
  'cut -d : -f 1 a',
  'tr a b',
  'comm -12 a b',
  'cmp -s a b',
  'diff -ru a b',
  'nl a',
  'tac a',
  'seq 1 5',
  'echo -n hi',
  'printf %s hi',
  'true',
  'false',
  'basename a/b',
  'dirname a/b',
  'realpath a',
  'readlink -f a',
  'stat -c %s a',
  'file -b a',
  'du -sh .',
  'df -h',
  'tree -L 2',
  'md5sum a',
  'sha1sum a',
  'sha256sum -c sums',
  'sha512sum a',
  'jq -r .a file',
  'id -u',
  'whoami',
  'uname -a',
  'nproc',
  'date -u',
  'node --version',
  'python3 --version',
];

/** Arguments that look harmless beside a reviewed program, and write, start programs, contact hosts or wait. */
const TRICKY: readonly string[] = [
  'git -c core.pager=touch log',
  'git -c alias.log=!sh log',
  'git --exec-path=/tmp/x log',
  'git -C /tmp log',
  'git -p log',
  'git log --output=x',
  'git log --outp=x',
  'git log --ext-diff',
  'git log -p',
  'git show --textconv HEAD',
  'git grep -Otouch needle',
  'git grep -O needle',
  'git grep --open-files-in-pager=touch needle',
  'git grep --open=touch needle',
  'git diff',
  'git blame a',
  'git branch new',
  'git branch -D main',
  'git branch -m a b',
  'git tag v1',
  'git tag -d v1',
  'git remote add x y',
  'git remote show origin',
  'git stash',
  'git stash pop',
  'git stash list x',
  'git cat-file --textconv HEAD:a',
  'git cat-file --filters HEAD:a',
  'git describe --dirty',
  'git config alias.log !sh',
  'git fetch',
  'git pull',
  'find . -exec rm {} ;',
  'find . -execdir rm {} ;',
  'find . -ok rm {} ;',
  'find . -okdir rm {} ;',
  'find . -delete',
  'find . -fprint x',
  'find . -fprint0 x',
  'find . -fprintf x %p',
  'find . -fls x',
  'find -files0-from x',
  'rg --pre touch needle',
  'rg --pre=touch needle',
  'rg --hostname-bin=touch needle',
  'rg --hostname-bin touch needle',
  'rg -z needle',
  'rg --search-zip needle',
  'sort -o a a',
  'sort -oa a',
  'sort -uo a a',
  'sort --output=a a',
  'sort --outp=a a',
  'sort -T /x a',
  'sort --compress-program=touch a',
  'sort --compress-prog=touch a',
  'sort --files0-from=x',
  'uniq a b',
  'uniq -c a b',
  'tail -f a',
  'tail -F a',
  'tail --follow a',
  'tail --retry -f a',
  'tail -n 5 -f a',
  'tail --pid=1 -f a',
  'diff -l a b',
  'diff --paginate a b',
  'tree -o x',
  'tree -R -H x',
  'tree -ox',
  'file -C -m x',
  'file -z a',
  'file -Z a',
  'file --compile',
  'date -s tomorrow',
  'date --set=tomorrow',
  'date 01010101',
  'date --set tomorrow',
  'date -f x',
  'date -r /dev/stdin',
  'jq -f script .',
  'jq -L lib .',
  'jq --from-file x',
  'node -e 1',
  'node script.js',
  'node --version script.js',
  'node -v -e 1',
  'node -r x --version',
  'python3 -c 1',
  'python3 -V script.py',
  'python3 script.py',
  'hostname new',
  'env ls',
  'xargs ls',
  'sh -c ls',
  'cat -n --unknown a',
  'ls --color-x',
  'echo --help --x',
  'tee a',
  'touch a',
  'mkdir a',
  'rm a',
  'cp a b',
  'mv a b',
  'sed -n 1p a',
  'sed -i s/a/b/ a',
  'awk 1 a',
  'curl localhost',
  'tar tf a',
  'less a',
  'man ls',
  'stat -- -x --unknown',
  'sha256sum --unknown a',
];

describe('the reviewed table of effects', () => {
  it.each(LOWERED)('%s may run again', (line) => {
    expect(classOf(line.split(' '))).toBe('pure');
  });

  it('git status refreshes the index: idempotent, not pure', () => {
    expect(classOf(['git', 'status', '--porcelain'])).toBe('idempotent');
  });

  it.each(TRICKY)('%s stays once', (line) => {
    expect(classOf(line.split(' '))).toBe('once');
  });

  it('every program of the table has a row here that is lowered, and none that is a launcher', () => {
    const { programs } = parse(readFileSync('policies/data/effects.yaml', 'utf8')) as {
      programs: Record<string, readonly { words: string[] }[]>;
    };
    const { launchers } = parse(readFileSync('policies/data/call.yaml', 'utf8')) as { launchers: string[] };
    const shown = new Set(LOWERED.map((line) => line.split(' ')[0]));
    expect(Object.keys(programs).filter((name) => !shown.has(name))).toEqual([]);
    // `find` starts programs with arguments that the table does not admit.
    expect(Object.keys(programs).filter((name) => launchers.includes(name) && name !== 'find')).toEqual([]);
  });

  it('another program of the same name, a variable, or the background keep it once', () => {
    expect(classOf(['./ls'])).toBe('once');
    expect(classOf(['/workspace/bin/git', 'log'])).toBe('once');
    for (const change of [
      { env: ['PATH'] },
      { env: ['LD_PRELOAD'] },
      { env: ['GIT_PAGER'] },
      { env: ['RIPGREP_CONFIG_PATH'] },
      { background: true },
    ]) {
      const args = { ...(shellArgs(['ls']) as object), ...change };
      expect(engine.decide(callInput({ args })).obligations.filter(({ kind }) => kind === 'effect_class')).toEqual([]);
    }
  });
});
