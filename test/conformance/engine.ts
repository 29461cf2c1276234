import { spawn } from 'node:child_process';
import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { bootId, findProcess, type ProcessRef } from '../../adapters/sandbox/bubblewrap/processes.ts';
import { openRecords } from '../../adapters/sandbox/bubblewrap/records.ts';
import type { KernelUser } from '../../adapters/sandbox/slices.ts';
import { readSubIds, sliceCount, sliceOf } from '../../adapters/sandbox/slices.ts';
import { type TestKernel, type TestSandbox, UNDYING_INIT } from '../support/sandbox-client.ts';
import { processesOf, survivors } from '../support/sandbox-processes.ts';
import { approvedFileClauses } from './engine-approved.ts';

/**
 * The contract of `SandboxEngine`, N1 to N7, over a kernel process of `user` which has nothing but the engine. A new engine adds one line
 * to `engine.test.ts`.
 */
export function engineConformance(
  name: string,
  user: KernelUser,
  open: (user: KernelUser, stateDir?: string) => Promise<TestKernel>,
): void {
  describe(`${name} as ${user.name}`, () => {
    let kernel: TestKernel;
    let sandbox: TestSandbox;
    beforeAll(async () => {
      kernel = await open(user);
      sandbox = await kernel.start({ token: 'the-token-of-this-sandbox' });
    });
    afterAll(() => kernel?.close());

    approvedFileClauses({
      get kernel() {
        return kernel;
      },
      get sandbox() {
        return sandbox;
      },
    });

    it('N1 has no network interface but loopback, and loopback is up', async () => {
      const { stdout } = await sandbox.tool(['cat', '/proc/net/dev']);
      expect(stdout.split('\n').flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? [])).toEqual(['lo']);
      const echo = `const net = require('node:net'); const server = net.createServer((s) => s.end('hello')).listen(0, '127.0.0.1', () =>
        net.connect(server.address().port, '127.0.0.1').on('data', (d) => { console.log(String(d)); server.close(); }))`;
      expect((await sandbox.tool(['/opt/outwork/node', '-e', echo])).stdout).toBe('hello\n');
    });

    it('N1 gives every process the explicit environment only', async () => {
      const environments = await sandbox.executor<string[]>(
        `const fs = require('node:fs');
         return fs.readdirSync('/proc').filter(Number).map((pid) => { try { return fs.readFileSync('/proc/' + pid + '/environ', 'utf8') } catch { return '' } })`,
      );
      expect(
        environments
          .join('\0')
          .split('\0')
          .filter(Boolean)
          .map((entry) => entry.split('=')[0])
          .sort(),
      ).toEqual([...GUEST_VARIABLES, ...GUEST_VARIABLES].sort());
    });

    it('N1 shows no home, user table, socket or device of the host', async () => {
      const look =
        'ls -A / /home /run /dev; cat /etc/passwd; find / \\( -path /usr -o -path /proc \\) -prune -o \\( -type s -o -type b \\) -print 2>/dev/null';
      const { stdout } = await sandbox.tool(['sh', '-c', look]);
      expect(readdirSync('/').filter((dir) => ['root', 'srv', 'mnt', 'media', 'sys', 'boot'].includes(dir)).length).toBeGreaterThan(0);
      for (const dir of ['root', 'srv', 'mnt', 'media', 'sys', 'boot', 'sd', 'vda', 'nvme', 'kmsg', 'fuse', 'kvm']) {
        expect(stdout.split('\n')).not.toContain(dir);
      }
      const accounts = stdout.split('\n').flatMap((line) => /^([a-z]+):x:/.exec(line)?.[1] ?? []);
      expect(accounts).toEqual(['root', 'agent', 'nobody']);
      expect(stdout).not.toMatch(/\.sock/);
    });

    it('N1 lets tools write the workspace, HOME and temporary directories and nothing else', async () => {
      const { stdout } = await sandbox.tool(['sh', '-c', 'find / -type d -writable -not -path "/proc/*" 2>/dev/null | sort']);
      expect(stdout.trim().split('\n')).toEqual(['/dev/shm', '/home/agent', '/tmp', '/workspace']);
    });

    it('N2 maps ids of the owner’s own slice only, never the kernel’s', async () => {
      const slice = sliceOf(await readSubIds(user), 0);
      const maps = await sandbox.executor<string>(
        `const fs = require('node:fs'); return fs.readFileSync('/proc/self/uid_map', 'utf8') + '--' + fs.readFileSync('/proc/self/gid_map', 'utf8')`,
      );
      const [uids, gids] = maps.split('--').map((map) =>
        map
          .trim()
          .split('\n')
          .map((line) => line.trim().split(/\s+/).map(Number)),
      );
      expect(uids).toEqual(slice.uidMap.map(({ inside, outside, count }) => [inside, outside, count]));
      expect(gids).toEqual(slice.gidMap.map(({ inside, outside, count }) => [inside, outside, count]));
      expect(uids?.some(([, outside = 0, count = 0]) => user.uid >= outside && user.uid < outside + count)).toBe(false);
    });

    it('N2 nothing made inside is owned by the kernel’s user', async () => {
      const slice = sliceOf(await readSubIds(user), 0);
      await sandbox.tool(['sh', '-c', 'umask 022; mkdir -p made/below; echo x >made/below/file; chmod 777 /workspace']);
      await sandbox.executor(`require('node:fs').writeFileSync('/workspace/by-executor', 'x')`);
      await sandbox.tool(['chmod', '755', '/workspace']);
      const root = join(kernel.stateDir, 'workspace', 'u0');
      expect(statSync(root).uid).toBe(slice.toolUid);
      expect(statSync(join(root, 'made/below/file')).uid).toBe(slice.toolUid);
      expect(statSync(join(root, 'by-executor')).uid).toBe(slice.executorUid);
    });

    it('N2 two owners share no id, and the range ends where it ends', async () => {
      const other = await kernel.start({ slice: 1 });
      const ids = async (one: TestSandbox) => {
        const processes = await processesOf(one, kernel);
        return processes.map(({ pid }) => /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
      };
      const [first, second] = await Promise.all([ids(sandbox), ids(other)]);
      expect(first.filter((id) => second.includes(id))).toEqual([]);
      await other.stop();
      const count = sliceCount(await readSubIds(user));
      await expect(kernel.start({ slice: count })).rejects.toMatchObject({ code: 'slice_exhausted' });
    });

    it('N2 keeps for the executor the four capabilities and for a tool none', async () => {
      const caps = (status: string) =>
        [...status.matchAll(/^Cap(?:Prm|Eff|Bnd|Inh|Amb):\s+(\w+)$/gm)].map(([, set]) => Number.parseInt(set as string, 16));
      const setgid = 1 << 6;
      const setuid = 1 << 7;
      const kill = 1 << 5;
      const netBindService = 1 << 10;
      const executor = await sandbox.executor<string>(`return require('node:fs').readFileSync('/proc/self/status', 'utf8')`);
      expect(new Set(caps(executor))).toEqual(new Set([setgid | setuid | kill | netBindService]));
      const tool = (await sandbox.tool(['cat', '/proc/self/status'])).stdout;
      expect(/^CapEff:\s+0+$/m.test(tool) && /^CapPrm:\s+0+$/m.test(tool) && /^CapAmb:\s+0+$/m.test(tool)).toBe(true);
      expect(tool).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(tool).toMatch(/^Groups:\s*$/m);
    });

    it('N3 the guest reads exactly the token on descriptor 3, and no other process has it', async () => {
      expect(sandbox.hello).toBe('the-token-of-this-sandbox');
      const places = await sandbox.executor<string[]>(
        `const fs = require('node:fs'); const token = 'the-token-of' + '-this-sandbox'; const found = [];
         for (const pid of fs.readdirSync('/proc').filter(Number))
           for (const file of ['environ', 'cmdline']) if (fs.readFileSync('/proc/' + pid + '/' + file, 'utf8').includes(token)) found.push(pid + file);
         for (const fd of fs.readdirSync('/proc/1/fd')) { const to = fs.readlinkSync('/proc/1/fd/' + fd); if (Number(fd) > 2 && !to.endsWith('init.sh')) found.push(to) }
         return found`,
      );
      expect(places).toEqual([]);
      const onHost = (await processesOf(sandbox, kernel)).map(({ pid }) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
      expect(onHost.join()).not.toContain('the-token');
    });

    it('N3 a tool inherits descriptors 0, 1 and 2 only', async () => {
      const { stdout } = await sandbox.tool(['sh', '-c', 'ls /proc/$$/fd']);
      expect(stdout.trim().split('\n')).toEqual(['0', '1', '2']);
    });

    it('N4 when the guest is killed, every process ends, detached and deaf ones too, and `ended` resolves', async () => {
      const doomed = await kernel.start({ slice: 2 });
      const tree = `trap '' TERM HUP; for i in 1 2 3; do setsid sh -c 'trap "" TERM; sleep 1000 & sleep 1000' & done; echo ready; wait`;
      await doomed.tool(['sh', '-c', tree], { until: 'ready' });
      const before = await processesOf(doomed, kernel);
      expect(before.length).toBeGreaterThanOrEqual(6);
      await doomed.executor(`process.kill(process.pid, 'SIGKILL')`).catch(() => {});
      expect((await doomed.ended()).reason).toMatch(/^guest ended/);
      expect(await survivors(before)).toEqual([]);
    });

    it('N4 when the guest exits or the sandbox is stopped, `ended` resolves and its socket directory is gone', async () => {
      for (const end of ['exit', 'stop'] as const) {
        const doomed = await kernel.start({ slice: 2 });
        const before = await processesOf(doomed, kernel);
        if (end === 'stop') await doomed.stop();
        else await doomed.executor('process.exit(7)').catch(() => {});
        expect((await doomed.ended()).reason).toMatch(end === 'stop' ? /^stopped/ : /exit 7/);
        expect(await survivors(before)).toEqual([]);
        expect(() => lstatSync(join(kernel.stateDir, 's', doomed.generation))).toThrow('ENOENT');
      }
    });

    it('N4 a kernel that dies takes its sandboxes with it', async () => {
      const mortal = await open(user);
      const orphan = await mortal.start();
      const before = await processesOf(orphan, mortal);
      // A guest that hangs cannot notice the loss by itself.
      void orphan.executor(`process.kill(process.pid, 'SIGSTOP')`).catch(() => {});
      await vi.waitFor(() => expect(before.map(({ pid }) => readFileSync(`/proc/${pid}/stat`, 'utf8')).join()).toMatch(/\) T /));
      await mortal.crash();
      await vi.waitFor(async () => expect(await survivors(before)).toEqual([]), { timeout: 10_000 });
      const next = await open(user, mortal.stateDir);
      await next.sweep();
      await next.close();
      await mortal.close();
    });

    it('N5 sweep ends what an earlier kernel left and removes its socket directory', async () => {
      const earlier = await open(user);
      // What would be left if both had failed: the tie to the kernel's life, and the init that ends with its guest.
      const left = await earlier.start({ weakening: { without: ['--die-with-parent'], command: UNDYING_INIT } });
      const init = (await findProcess(left.initPid as number)) as ProcessRef;
      const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${init.pid}/status`, 'utf8'))?.[1]);
      const monitor = (await findProcess(parent)) as ProcessRef;
      const socketDir = join(earlier.stateDir, 's', left.generation);
      await openRecords(join(earlier.stateDir, 'sandboxes')).write({
        generation: left.generation,
        socketDir,
        bootId: await bootId(),
        monitor,
        init,
      });
      own(join(earlier.stateDir, 'sandboxes'), user);
      own(join(earlier.stateDir, 'sandboxes', `${left.generation}.json`), user);
      await earlier.crash();
      expect(await survivors([init, monitor])).toHaveLength(2);

      const later = await open(user, earlier.stateDir);
      await later.sweep();
      expect(await survivors([init, monitor])).toEqual([]);
      expect(readdirSync(join(earlier.stateDir, 's'))).toEqual([]);
      await later.close();
      await earlier.close();
    });

    it('N5 sweep spares a process that has only the number of a recorded one, and the sandboxes of this kernel', async () => {
      const bystander = spawn('sleep', ['1000']);
      onTestFinished(() => void bystander.kill('SIGKILL'));
      const real = (await findProcess(bystander.pid as number)) as ProcessRef;
      const reused = { ...real, startTicks: String(Number(real.startTicks) - 1) };
      const record = {
        generation: 'gone',
        socketDir: join(kernel.stateDir, 's', 'gone'),
        bootId: await bootId(),
        monitor: reused,
        init: reused,
      };
      await openRecords(join(kernel.stateDir, 'sandboxes')).write(record);
      own(join(kernel.stateDir, 'sandboxes', 'gone.json'), user);
      const mine = await processesOf(sandbox, kernel);
      await kernel.sweep();
      expect(await survivors([real, ...mine])).toHaveLength(1 + mine.length);
      expect((await sandbox.tool(['echo', 'alive'])).stdout).toBe('alive\n');
    });

    it('reads memory and processes from outside', async () => {
      const before = await sandbox.usage();
      expect(before.processes).toBe(2);
      expect(before.memoryBytes).toBeGreaterThan(2 * 1024 * 1024);
      const { pid } = await sandbox.tool(['sh', '-c', 'echo ready; exec sleep 1000'], { until: 'ready' });
      expect((await sandbox.usage()).processes).toBe(3);
      await sandbox.executor(`process.kill(${pid}, 'SIGKILL')`);
    });

    it('BL-083 the init reaps every orphan', async () => {
      await sandbox.tool(['sh', '-c', 'for i in $(seq 200); do (sleep 0.01 & ) ; done']);
      const zombies = () => sandbox.tool(['sh', '-c', 'grep -l "^State:.Z" /proc/[0-9]*/status; true']);
      await vi.waitFor(async () => expect((await zombies()).stdout).toBe(''), { timeout: 10_000 });
    });

    it('BL-106 git works in a fresh workspace although the kernel made it', async () => {
      const { code, stderr } = await sandbox.tool(['sh', '-c', 'mkdir repo && cd repo && git init -q . && touch x && git status --short'], {
        cwd: '/workspace',
      });
      expect(stderr).toBe('');
      expect(code).toBe(0);
    });

    it('a tool may lock its own workspace root; the next sandbox starts all the same', async () => {
      const first = await kernel.start({ slice: 3 });
      await first.tool(['sh', '-c', 'echo kept >file; chmod 700 /workspace']);
      await first.stop();
      const second = await kernel.start({ slice: 3 });
      expect((await second.tool(['cat', '/workspace/file'], { cwd: '/' })).stdout).toBe('kept\n');
      await second.stop();
    });

    it('refuses a generation used before, a socket directory elsewhere, a path too long', async () => {
      const sockets = join(kernel.stateDir, 's');
      await expect(kernel.prepareSocketDir(join(sockets, sandbox.generation), 0)).rejects.toMatchObject({ code: 'start_failed' });
      await expect(kernel.prepareSocketDir('/tmp/elsewhere', 0)).rejects.toMatchObject({ code: 'start_failed' });
      await expect(kernel.prepareSocketDir(join(sockets, 'x'.repeat(90)), 0)).rejects.toMatchObject({ code: 'state_directory_unusable' });
    });

    it('refuses a workspace that is a link', async () => {
      const dir = join(kernel.stateDir, 'linked');
      mkdirSync(dir);
      own(dir, user);
      symlinkSync('/etc', join(dir, 'w'));
      await expect(kernel.start({ paths: { workspaceDir: join(dir, 'w') } })).rejects.toMatchObject({ code: 'start_failed' });
    });
  });
}

/** What a test made in a kernel's state directory belongs to that kernel's user. */
function own(path: string, user: KernelUser): void {
  if (process.getuid?.() === 0) chownSync(path, user.uid, user.uid);
}

const GUEST_VARIABLES = ['HOME', 'LANG', 'OUTWORK_GIDS', 'OUTWORK_PRIVATE', 'OUTWORK_SOCKET', 'OUTWORK_TOOL_UID', 'PATH', 'PWD'];
