import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxLimits } from '../../core/config.ts';
import { kernelUsers, openKernel, type TestKernel, type TestSandbox } from '../support/sandbox-client.ts';

interface Attack {
  readonly threat: 'T17';
  readonly title: string;
  /** The limits that guard, and those of the control. */
  readonly limits: Partial<SandboxLimits>;
  readonly weakened: Partial<SandboxLimits>;
  attempt(sandbox: TestSandbox): Promise<{ readonly through: boolean; readonly evidence: string }>;
}

const MiB = 1024 * 1024;

const perl = async (sandbox: TestSandbox, program: string, options = {}) => {
  const { stdout, stderr, code, signal } = await sandbox.tool(['perl', '-e', program], options);
  return { count: Number(stdout.trim().split('\n').at(-1)), evidence: `${stdout}${stderr} exit ${code} ${signal ?? ''}` };
};

const ATTACKS: readonly Attack[] = [
  {
    threat: 'T17',
    title: 'makes processes without end',
    limits: { pids: 64 },
    weakened: { pids: 1000 },
    async attempt(sandbox) {
      const program =
        '$| = 1; my $n = 0; while ($n < 200) { my $pid = fork; last unless defined $pid; if (!$pid) { sleep 1000; exit } $n++ } print "$n\\n"; kill 9, -$$';
      const { stdout } = await sandbox.tool(['setsid', '--wait', 'perl', '-e', program]);
      const made = Number(stdout);
      return { through: made >= 200, evidence: `${made} processes made` };
    },
  },
  {
    threat: 'T17',
    title: 'takes memory without end',
    limits: { memoryMiB: 128 },
    weakened: { memoryMiB: 1024 },
    async attempt(sandbox) {
      const program = `$| = 1; my @all; for my $n (1 .. 40) { push @all, "x" x (10 * ${MiB}); print $n * 10, "\\n" }`;
      const { count, evidence } = await perl(sandbox, program);
      return { through: count >= 400, evidence };
    },
  },
  {
    threat: 'T17',
    title: 'takes memory through a temporary file',
    limits: { memoryMiB: 128 },
    weakened: { memoryMiB: 1024 },
    async attempt(sandbox) {
      const { stdout, stderr } = await sandbox.tool([
        'sh',
        '-c',
        'head -c 400000000 /dev/zero >/tmp/big; stat -c %s /tmp/big; rm -f /tmp/big',
      ]);
      return { through: Number(stdout) >= 400_000_000, evidence: stdout + stderr };
    },
  },
  {
    threat: 'T17',
    title: 'writes one file without end',
    limits: { fileMiB: 1 },
    weakened: {},
    async attempt(sandbox) {
      const { stdout, stderr } = await sandbox.tool(['sh', '-c', 'head -c 3000000 /dev/zero >big; stat -c %s big; rm -f big']);
      return { through: Number(stdout) > MiB, evidence: stdout + stderr };
    },
  },
  {
    threat: 'T17',
    title: 'opens files without end',
    limits: { openFiles: 256 },
    weakened: { openFiles: 2048 },
    async attempt(sandbox) {
      const program = 'my @all; while (@all < 1000) { open(my $f, "<", "/dev/null") or last; push @all, $f } print scalar(@all), "\\n"';
      const { count, evidence } = await perl(sandbox, program);
      return { through: count >= 1000, evidence };
    },
  },
  {
    threat: 'T17',
    title: 'raises the limits of its own process',
    limits: { openFiles: 256 },
    weakened: { openFiles: 2048 },
    async attempt(sandbox) {
      const { stdout, stderr } = await sandbox.tool(['sh', '-c', 'ulimit -n 2000 && ulimit -n'], { uid: 0, gid: 0 });
      return { through: stdout.trim() === '2000', evidence: stdout + stderr };
    },
  },
];

for (const user of kernelUsers()) {
  describe(`bubblewrap as ${user.name}, with control groups of its own`, () => {
    const open = (limits: Partial<SandboxLimits>) => openKernel(user, undefined, undefined, limits);

    for (const { threat, title, limits, weakened, attempt } of ATTACKS) {
      it(`${threat} tool: ${title}`, async () => {
        await using kernel = await open(limits);
        const sandbox = await kernel.start();
        const result = await attempt(sandbox);
        expect(result, result.evidence).toMatchObject({ through: false });
        // What went beyond the limit is ended or refused; the guest is not.
        expect((await sandbox.tool(['echo', 'alive'])).stdout).toBe('alive\n');
      });

      it(`${threat} control: ${title}: it succeeds when the limit is high`, async () => {
        await using kernel = await open(weakened);
        const result = await attempt(await kernel.start());
        expect(result, result.evidence).toMatchObject({ through: true });
      });
    }

    it('T17 a sandbox that lost its guest to want of memory says so', async () => {
      await using kernel = await open({ memoryMiB: 128 });
      const sandbox = await kernel.start();
      await sandbox.executor(`const all = []; for (;;) all.push(Buffer.alloc(16 * ${MiB}, 1))`).catch(() => {});
      expect((await sandbox.ended()).reason).toMatch(/want of memory/);
    });

    it('T17 what one sandbox uses up is not missing in another of the same kernel', async () => {
      await using kernel = await open({ pids: 64 });
      const greedy = await kernel.start({ slice: 0 });
      const bomb =
        'for (1 .. 200) { my $pid = fork; last unless defined $pid; if (!$pid) { sleep 1000; exit } } $| = 1; print "full\\n"; sleep 1000';
      await greedy.tool(['perl', '-e', bomb], { until: 'full' });
      const other = await kernel.start({ slice: 1 });
      const ten =
        'my @all = map { my $pid = fork // die; $pid or do { sleep 1000; exit }; $pid } 1 .. 10; print scalar(@all); kill 9, @all';
      expect((await other.tool(['perl', '-e', ten])).stdout).toBe('10');
    });
  });

  describe(`the disk, bubblewrap as ${user.name}`, () => {
    let kernel: TestKernel;
    beforeAll(async () => {
      kernel = await openKernel(user, undefined, undefined, { diskMiB: 16 });
    });
    afterAll(() => kernel?.close());

    const fill = (sandbox: TestSandbox, where = '.') =>
      sandbox.tool(['sh', '-c', `mkdir -p ${where}; for i in 1 2 3; do head -c 8000000 /dev/zero >${where}/big$i; done; echo written`]);

    it('T18 tool: a disk filler is ended as `disk_full`; then files can be deleted and none can grow, until there is room', async () => {
      const sandbox = await kernel.start();
      expect((await fill(sandbox)).stdout).toBe('written\n');
      await kernel.lookAtDisk();
      expect(await sandbox.ended()).toMatchObject({
        code: 'disk_full',
        reason: expect.stringMatching(/^disk_full: the user has 2\d MiB .* 16 MiB are allowed/),
      });

      const again = await kernel.start();
      expect((await again.tool(['sh', '-c', '(echo more) >>note; stat -c %s note'])).stdout).toBe('0\n');
      expect((await again.tool(['sh', '-c', 'ulimit -f 1000 || echo refused'])).stdout).toBe('refused\n');
      await kernel.lookAtDisk();
      expect((await again.tool(['sh', '-c', 'rm big1 big2 && echo deleted'])).stdout).toBe('deleted\n');
      await again.stop();

      const third = await kernel.start();
      await kernel.lookAtDisk();
      await third.stop();
      const normal = await kernel.start();
      expect((await normal.tool(['sh', '-c', 'echo more >>note; cat note'])).stdout).toBe('more\n');
      await normal.stop();
    });

    it('T18 tool: cannot hide what it fills in a directory that it has closed', async () => {
      const sandbox = await kernel.start({ slice: 1 });
      await fill(sandbox, 'closed');
      await sandbox.tool(['sh', '-c', 'chmod 000 closed']);
      await kernel.lookAtDisk();
      expect(await sandbox.ended()).toMatchObject({ code: 'disk_full' });
    });

    it('T18 tool: a link out of the workspace is not followed by the measurement', async () => {
      const sandbox = await kernel.start({ slice: 2 });
      await sandbox.tool(['sh', '-c', 'ln -s /usr usr; ln -s / root; echo fine']);
      await kernel.lookAtDisk();
      expect((await sandbox.tool(['echo', 'alive'])).stdout).toBe('alive\n');
      await sandbox.stop();
    });

    it('T18 control: it succeeds when the quota is high', async () => {
      await using generous = await openKernel(user, undefined, undefined, { diskMiB: 1000 });
      const sandbox = await generous.start();
      await fill(sandbox);
      await generous.lookAtDisk();
      expect((await sandbox.tool(['sh', '-c', 'cat big1 big2 big3 | wc -c'])).stdout.trim()).toBe('24000000');
    });

    it('T18 no sandbox starts while the file system is below its reserve', async () => {
      await using full = await openKernel(user, undefined, undefined, { diskReserveMiB: 1024 * 1024 * 1024 });
      await expect(full.start()).rejects.toMatchObject({ code: 'disk_full' });
    });
  });
}
