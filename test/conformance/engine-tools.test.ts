import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kernelUsers, openKernel, type TestKernel, type TestSandbox } from '../support/sandbox-client.ts';

/** Real programs, what each is asked to do in a fresh workspace, and what it must print. All of them under filter and limits. */
const TOOLS: readonly (readonly [tool: string, script: string, prints: RegExp])[] = [
  [
    'git',
    `git init -q -b main repo && cd repo && git config user.name T && git config user.email t@example.test && echo one >f && git add f &&
     git commit -qm First && echo two >>f && git commit -qam Second && git gc -q && git clone -q . ../copy && git -C ../copy log --oneline | wc -l`,
    /^2$/m,
  ],
  ['node', `node -e "const { Worker } = require('node:worker_threads'); new Worker('console.log(6 * 7)', { eval: true })"`, /^42$/m],
  [
    'node (child processes and servers)',
    `node -e "const s = require('node:http').createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', async () => {
       console.log(await (await fetch('http://127.0.0.1:' + s.address().port)).text());
       console.log(require('node:child_process').execSync('echo child').toString()); s.close() })"`,
    /served[\s\S]*child/,
  ],
  [
    'python3',
    `python3 -c "import subprocess, threading, multiprocessing, sqlite3, tempfile
def work(n): return n * n
if __name__ == '__main__':
  with multiprocessing.Pool(2) as pool: print(sum(pool.map(work, range(10))))
  t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
  print(sqlite3.connect(tempfile.mktemp()).execute('select 6 * 7').fetchone()[0]); print(subprocess.check_output(['echo', 'child']).decode())"`,
    /285[\s\S]*thread[\s\S]*42[\s\S]*child/,
  ],
  ['npm (offline)', 'npm init -y >/dev/null && npm pack --silent && npm pkg get version', /-1\.0\.0\.tgz[\s\S]*"1\.0\.0"/],
  [
    'gcc',
    `printf '#include <stdio.h>\\n#include <pthread.h>\\nstatic void *f(void *x){return x;}\\nint main(void){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);puts("compiled");return 0;}\\n' >a.c && gcc -O1 -pthread -o a a.c && ./a`,
    /^compiled$/m,
  ],
  ['rg', 'mkdir d && echo needle >d/x && rg --files-with-matches needle .', /d\/x/],
  ['grep and find', 'mkdir -p e && echo needle >e/x && grep -rl needle e && find e -type f -newermt 2000-01-01', /e\/x[\s\S]*e\/x/],
  ['tar', 'mkdir t && echo in >t/a && tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/a', /^in$/m],
  ['sort', 'seq 200000 | sort -R --parallel=2 | sort -n --parallel=2 -S 8M | tail -1', /^200000$/m],
  [
    'perl',
    `perl -e 'my $p = fork; if (!$p) { print "child\\n"; exit } waitpid $p, 0; print join(",", sort { $a <=> $b } 3, 1, 2), "\\n"'`,
    /child[\s\S]*1,2,3/,
  ],
  [
    'sh',
    'trap "echo trapped" EXIT; (sleep 0.01 & wait); echo "$(id -u):$(umask)" | tee /dev/stderr >/dev/null; mkfifo p; echo x >p & cat p',
    /x\s+trapped/,
  ],
];

describe('real programs in a bubblewrap sandbox', () => {
  for (const user of kernelUsers()) {
    describe(`as ${user.name}`, () => {
      let kernel: TestKernel;
      let sandbox: TestSandbox;
      beforeAll(async () => {
        kernel = await openKernel(user);
        sandbox = await kernel.start();
      });
      afterAll(() => kernel?.close());

      it.each(TOOLS)('%s works under the filter and the limits', async (name, script, prints) => {
        const dir = `/workspace/${name.replaceAll(/\W+/g, '-')}`;
        await sandbox.tool(['mkdir', '-p', dir]);
        const { code, stdout, stderr } = await sandbox.tool(['sh', '-c', script], { cwd: dir });
        expect(stdout, stderr).toMatch(prints);
        expect(code, stderr).toBe(0);
      });
    });
  }
});
