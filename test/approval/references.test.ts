import { describe, expect, it } from 'vitest';
import { type References, referencesOf } from '../../core/approval/references.ts';

const of = (argv: readonly string[], cwd?: string) => referencesOf({ argv, ...(cwd === undefined ? {} : { cwd }) });
const files = (argv: readonly string[], cwd?: string) => (of(argv, cwd) as References).files;
const words = (line: string) => line.split(' ');

describe('the files that a command runs', () => {
  it.each([
    ['./deploy.sh', 0, 'deploy.sh'],
    ['bin/deploy --all', 0, 'bin/deploy'],
    ['/workspace/deploy.sh', 0, 'deploy.sh'],
    ['/usr/../workspace/x.sh', 0, 'x.sh'],
    ['sh deploy.sh', 1, 'deploy.sh'],
    ['sh -eux deploy.sh prod', 2, 'deploy.sh'],
    ['bash -- -odd.sh', 2, '-odd.sh'],
    ['/bin/bash ./deploy.sh', 1, 'deploy.sh'],
    ['python3 tools/x.py --dry', 1, 'tools/x.py'],
    ['python3.12 -u x.py', 2, 'x.py'],
    ['node app.js', 1, 'app.js'],
    ['perl -w x.pl', 2, 'x.pl'],
    ['ruby x.rb', 1, 'x.rb'],
    ['env A=1 B=2 sh deploy.sh', 4, 'deploy.sh'],
    ['/usr/bin/env python3 x.py', 2, 'x.py'],
    ['nohup setsid ./x', 2, 'x'],
    ['timeout 10 sh deploy.sh', 3, 'deploy.sh'],
    ['time env X=1 timeout 5 ./x', 5, 'x'],
    ['busybox sh deploy.sh', 2, 'deploy.sh'],
  ])('%s', (line, argument, path) => {
    expect(files(words(line))).toEqual([{ argument, path }]);
  });

  it('are taken relative to the directory of the command', () => {
    expect(files(['sh', 'x.sh'], 'sub/dir')).toEqual([{ argument: 1, path: 'sub/dir/x.sh' }]);
    expect(files(['../x.sh'], 'sub')).toEqual([{ argument: 0, path: 'x.sh' }]);
  });

  it.each(['make deploy', 'git push', '/usr/bin/git push', 'python3', 'sh', 'sh -', '/bin/sh /usr/share/x.sh', 'grep x ./file'])(
    'none: %s',
    (line) => {
      expect(of(words(line))).toEqual({ files: [], codeInArgument: false });
    },
  );

  it.each(['sh -c ls', 'bash -lc ls', 'python3 -c x', 'python3 -m http', 'node -e 1', 'perl -ne x', 'ruby -e 1', 'php -r x'])(
    'code in an argument: %s',
    (line) => {
      expect(of(words(line))).toEqual({ files: [], codeInArgument: true });
    },
  );

  it.each([
    ['../x.sh', 'out of the workspace'],
    ['/tmp/x.sh', 'where anyone may write'],
    ['/home/agent/bin/x', 'in HOME'],
    ['sh /dev/stdin', 'a device'],
    ['sh /proc/self/fd/3', 'a descriptor'],
    ['bash --rcfile x.sh y.sh', 'an option that loads a file'],
    ['bash -o posix x.sh', 'an option with a value'],
    ['node --require ./hook.js app.js', 'an option that loads a file'],
    ['node --import=./hook.js app.js', 'the same in one word'],
    ['python3 -W ignore x.py', 'an option with a value'],
    ['env -i sh x.sh', 'a launcher with options'],
    ['env -S x', 'a launcher that takes words apart'],
    ['timeout -k 1 5 sh x.sh', 'a launcher with options'],
    ['sudo ./x', 'a launcher whose options nobody has read'],
    ['/usr/bin/stdbuf -oL sh x.sh', 'the same by its path'],
    ['nohup flock lock ./x', 'the same behind another'],
    ['xargs sh x.sh', 'a launcher that adds arguments'],
  ])('cannot be told, so nobody is asked: %s (%s)', (line) => {
    expect(of(words(line))).toMatchObject({ code: 'approval_unclear' });
  });
});
