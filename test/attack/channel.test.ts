import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type AttackStep, attackTests } from '../support/attack.ts';
import { kernelUsers, openKernel, type Weakening } from '../support/sandbox-client.ts';

const replaceSocket: AttackStep = async (sandbox) => {
  const evidence = await sandbox.executor<string>(
    `const fs = require('node:fs'); const path = '/run/outwork/s/membrane.sock'; const tried = [];
     const attempt = (name, fn) => { try { fn(); tried.push(name + ' worked') } catch (error) { tried.push(name + ' ' + error.code) } };
     attempt('chmod', () => fs.chmodSync(path, 0o777));
     attempt('link', () => fs.symlinkSync('/etc', '/run/outwork/s/planted'));
     attempt('unlink', () => fs.unlinkSync(path));
     return tried.join(', ')`,
  );
  return { through: /unlink worked/.test(evidence), evidence };
};

const connectToSocket: AttackStep = async (sandbox) => {
  const connect = `for (const path of ['/run/outwork/membrane.sock', '/run/outwork/s/membrane.sock'])
    require('node:net').connect(path).on('connect', () => { console.log('connected'); process.exit() }).on('error', (e) => console.log(e.code))`;
  const { stdout } = await sandbox.tool(['/opt/outwork/node', '-e', connect]);
  return { through: stdout.includes('connected'), evidence: stdout };
};

const readEnvironments: AttackStep = async (sandbox) => {
  const evidence = await sandbox.executor<string>(
    `const fs = require('node:fs'); return fs.readdirSync('/proc').filter(Number).map((pid) => {
       try { return pid + ': ' + fs.readFileSync('/proc/' + pid + '/environ', 'utf8').replaceAll('\\0', ' ') } catch (error) { return pid + ': ' + error.code } }).join('\\n')`,
  );
  return { through: evidence.includes('kernel-only-secret'), evidence };
};

attackTests([
  {
    threat: 'T02',
    title: 'replaces the kernel’s membrane socket',
    actor: 'executor',
    attempt: replaceSocket,
    control: {
      when: 'the directory is mounted writable and its group may write',
      weakening: { writableSocketDir: true, socketModes: { directory: 0o770, socket: 0o660 } },
    },
  },
  {
    threat: 'T03',
    title: 'finds the kernel’s environment in /proc',
    actor: 'executor',
    attempt: readEnvironments,
    control: {
      when: 'bubblewrap itself is PID 1 and inherits the kernel’s environment',
      weakening: { before: ['env', 'OUTWORK_TEST_SECRET=kernel-only-secret'], without: ['--as-pid-1'] },
    },
  },
  {
    threat: 'T07',
    title: 'connects to the membrane socket',
    actor: 'tool',
    attempt: connectToSocket,
    control: {
      when: 'the directory around the socket and the socket are open to all',
      weakening: { replace: { '0700': ['0755'] }, socketModes: { directory: 0o711, socket: 0o666 } },
    },
  },
]);

describe('T02 second guard', () => {
  for (const user of kernelUsers()) {
    it(`T02 a writable mount alone does not let the executor replace the socket (${user.name})`, async () => {
      await using kernel = await openKernel(user);
      const sandbox = await kernel.start({ weakening: { writableSocketDir: true } });
      expect(await replaceSocket(sandbox, { kernel, user, hostDir: '' })).toMatchObject({ through: false });
    });
  }
});

describe('T08 descriptors of the kernel', () => {
  /** What is readable through any descriptor of any process of the sandbox, of a file that the kernel process inherited as number 40. */
  async function leaked(weakening?: Weakening): Promise<string> {
    const dir = mkdtempSync('/var/tmp/outwork-inherited-');
    const file = join(dir, 'file');
    writeFileSync(file, 'TOKEN40');
    const fd = openSync(file, 'r');
    const [user] = kernelUsers();
    if (user === undefined) throw new Error('no user');
    await using kernel = await openKernel(user, undefined, { number: 40, fd });
    const sandbox = await kernel.start(weakening === undefined ? {} : { weakening });
    const seen = await sandbox.executor<string>(
      `const fs = require('node:fs'); let seen = '';
       for (const pid of [1, 'self']) for (const fd of fs.readdirSync('/proc/' + pid + '/fd')) {
         try { const path = '/proc/' + pid + '/fd/' + fd; if (fs.statSync(path).isFile()) seen += fd + ' ' + fs.readFileSync(path, 'utf8').slice(0, 20) + '\\n' } catch {}
       }
       return seen`,
    );
    closeSync(fd);
    rmSync(dir, { recursive: true });
    return seen;
  }

  it('T08 executor: finds no descriptor that the kernel process inherited', async () => {
    expect(await leaked()).not.toContain('TOKEN40');
  });

  it('T08 control: it succeeds when the stage leaves inherited descriptors open', async () => {
    expect(await leaked({ keepInherited: true })).toContain('40 TOKEN40');
  });
});
