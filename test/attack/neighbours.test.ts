import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kernelUsers, openKernel, type TestKernel, type TestSandbox, type Weakening } from '../support/sandbox-client.ts';

/** What the victim has running: a program with a word in its arguments, a TCP server and an abstract socket that answer. */
const SERVE = `const net = require('node:net'); const answer = (s) => s.on('error', () => {}).end('neighbour-answers');
  const tcp = net.createServer(answer).listen(0, '127.0.0.1', () =>
    net.createServer(answer).listen('\\0neighbour-' + process.argv[1], () => console.log('port ' + tcp.address().port + ' ready')))`;

const CONNECT = `const net = require('node:net'); for (const target of [{ port: Number(process.argv[1]), host: '127.0.0.1' }, { path: '\\0neighbour-' + process.argv[2] }])
  net.connect(target).on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))`;

for (const user of kernelUsers()) {
  describe(`two users of one kernel, bubblewrap as ${user.name}`, () => {
    let kernel: TestKernel;
    const word = `word-${process.pid}-${user.uid}`;
    beforeAll(async () => {
      kernel = await openKernel(user);
    });
    afterAll(() => kernel?.close());

    const start = (slice: number, weakening?: Weakening) => kernel.start(weakening === undefined ? { slice } : { slice, weakening });

    const filesSeen = async (attacker: TestSandbox) =>
      (
        await attacker.tool([
          'sh',
          '-c',
          'find / -path /proc -prune -o -name neighbour-file -exec cat {} +; cat /others/u1/neighbour-file /workspace/../u1/neighbour-file',
        ])
      ).stdout;
    const processesSeen = async (attacker: TestSandbox) =>
      (await attacker.tool(['sh', '-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "'])).stdout;
    const answers = async (attacker: TestSandbox, port: string) =>
      (await attacker.tool(['/opt/outwork/node', '-e', CONNECT, port, word])).stdout;

    async function victim(weakening?: Weakening): Promise<{ sandbox: TestSandbox; port: string }> {
      const sandbox = await start(1, weakening);
      await sandbox.tool(['sh', '-c', 'echo neighbour-secret >neighbour-file; chmod 644 neighbour-file']);
      const { stdout } = await sandbox.tool(['/opt/outwork/node', '-e', SERVE, word], { until: 'ready' });
      return { sandbox, port: /port (\d+)/.exec(stdout)?.[1] ?? '' };
    }

    it('T16 tool: finds no file, process or socket of another user', async () => {
      const other = await victim();
      const attacker = await start(0);
      expect(await filesSeen(attacker)).toBe('');
      expect(await processesSeen(attacker)).not.toContain(word);
      expect(await answers(attacker, other.port)).not.toContain('neighbour-answers');
      for (const sandbox of [attacker, other.sandbox]) await sandbox.stop();
    });

    it('T16 control: it succeeds when the workspaces’ parent, the host’s /proc and network are shared', async () => {
      const shared: Weakening = { without: ['--unshare-net'], first: ['--bind', '/tmp/w', '/others'] };
      const other = await victim({ without: ['--unshare-net'] });
      const attacker = await start(0, { ...shared, replace: { '--proc': ['--ro-bind', '/proc'] } });
      expect(await filesSeen(attacker)).toContain('neighbour-secret');
      expect(await processesSeen(attacker)).toContain(word);
      expect((await answers(attacker, other.port)).match(/neighbour-answers/g)).toHaveLength(2);
      for (const sandbox of [attacker, other.sandbox]) await sandbox.stop();
    });
  });
}
