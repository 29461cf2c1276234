import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SECCOMP_ARGUMENTS } from '../../adapters/sandbox/bubblewrap/plan.ts';
import { readSubIds, sliceOf } from '../../adapters/sandbox/slices.ts';
import { type AttackStep, attackTests } from '../support/attack.ts';
import { PEEK } from '../support/peek.ts';
import { kernelUsers, openKernel, type TestSandbox } from '../support/sandbox-client.ts';

/** A program with the set-user-id bit, made by the executor where a tool has opened the way for it. */
const plantSetuid: AttackStep = async (sandbox, { kernel, user }) => {
  await sandbox.tool(['sh', '-c', 'rm -f /workspace/suid; chmod 777 /workspace']);
  await sandbox.executor(
    `const fs = require('node:fs'); fs.copyFileSync('/bin/true', '/workspace/suid'); fs.chmodSync('/workspace/suid', 0o4755)`,
  );
  const file = join(kernel.stateDir, 'workspace', 'u0', 'suid');
  const { uid, mode } = lstatSync(file);
  return { through: uid === user.uid && (mode & 0o4000) !== 0, evidence: `owner ${uid}, mode ${mode.toString(8)}` };
};

const peek = async (sandbox: TestSandbox, pid: number, word: string, as: { uid?: number; gid?: number }) => {
  const { stdout, stderr } = await sandbox.tool(['sh', '-c', PEEK, 'peek', String(pid), word], as);
  return { through: stdout.trim() !== '', evidence: `${stdout}${stderr}` };
};

const peekGuest =
  (as: { uid?: number; gid?: number }): AttackStep =>
  async (sandbox) => {
    const guest = await sandbox.executor<number>('return process.pid');
    const results = [await peek(sandbox, guest, 'OUTWORK_SOCKET', as), await peek(sandbox, 1, 'OUTWORK_SOCKET', as)];
    return { through: results.some(({ through }) => through), evidence: results.map(({ evidence }) => evidence).join('-- init\n') };
  };

const peekSibling =
  (gid: number): AttackStep =>
  async (sandbox) => {
    const victim = await sandbox.tool(['sh', '-c', 'echo ready; exec sleep 1000'], {
      gid: 2001,
      env: { GH_TOKEN: 'sibling-secret' },
      until: 'ready',
    });
    return peek(sandbox, victim.pid, 'sibling-secret', { gid });
  };

/** All signals and other ways to disturb the executor that need no look inside. */
const disturbGuest =
  (as: { uid?: number; gid?: number }): AttackStep =>
  async (sandbox) => {
    const guest = await sandbox.executor<number>('return process.pid');
    const tries = `for s in STOP CONT TERM KILL USR1; do kill -s $s ${guest} 2>/dev/null && echo $s; done
      renice -n 19 -p ${guest} >/dev/null 2>&1 && echo nice; prlimit --pid ${guest} --nofile=4:4 2>/dev/null && echo prlimit; true`;
    const { stdout, stderr } = await sandbox.tool(['sh', '-c', tries], as).catch((error) => ({ stdout: String(error), stderr: '' }));
    return { through: stdout.trim() !== '', evidence: stdout + stderr };
  };

attackTests([
  {
    threat: 'T01',
    title: 'makes a set-user-id program of the kernel’s user',
    actor: 'executor',
    attempt: plantSetuid,
    control: {
      when: 'the kernel’s own uid is in the map',
      async weakening({ user }) {
        const slice = sliceOf(await readSubIds(user), 0);
        // The limits count namespaces by uid; the kernel's own has made one more.
        return { uidMap: [{ inside: 0, outside: user.uid, count: 1 }, ...slice.uidMap.slice(1)], limits: {} };
      },
    },
  },
  {
    threat: 'T05',
    title: 'reads, traces or takes descriptors of guest and init',
    actor: 'tool',
    attempt: peekGuest({}),
    control: { when: 'the tool runs at the executor’s uid', attempt: peekGuest({ uid: 0, gid: 0 }) },
  },
  {
    threat: 'T05',
    title: 'stops, ends or starves the guest',
    actor: 'tool',
    attempt: disturbGuest({}),
    control: { when: 'the tool runs at the executor’s uid', attempt: disturbGuest({ uid: 0, gid: 0 }) },
  },
  {
    threat: 'T06',
    title: 'reads, traces or takes descriptors of another invocation',
    actor: 'tool',
    attempt: peekSibling(2002),
    control: { when: 'both invocations have one gid', attempt: peekSibling(2001) },
  },
]);

if (!existsSync('/usr/bin/perl')) throw new Error('perl is needed to try system calls');

describe('the ids alone', () => {
  for (const user of kernelUsers()) {
    for (const [title, attempt] of [
      ['T05 a tool is kept from guest and init when no filter is loaded', peekGuest({})],
      ['T06 invocations are kept from each other when no filter is loaded', peekSibling(2002)],
    ] as const) {
      it(`${title} (${user.name})`, async () => {
        await using kernel = await openKernel(user);
        const result = await attempt(await kernel.start({ weakening: { without: SECCOMP_ARGUMENTS } }), { kernel, user, hostDir: '' });
        expect(result, result.evidence).toMatchObject({ through: false });
      });
    }

    it(`T06 control: one gid and no filter, and a sibling is traced and read (${user.name})`, async () => {
      await using kernel = await openKernel(user);
      const sandbox = await kernel.start({ weakening: { without: SECCOMP_ARGUMENTS } });
      const { evidence } = await peekSibling(2001)(sandbox, { kernel, user, hostDir: '' });
      for (const way of ['environ', 'mem', 'ptrace', 'pidfd_getfd', 'process_vm_readv']) expect(evidence.split('\n')).toContain(way);
    });
  }
});
