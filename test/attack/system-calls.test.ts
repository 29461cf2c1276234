import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SECCOMP_ARGUMENTS } from '../../adapters/sandbox/bubblewrap/plan.ts';
import { type AttackStep, attackTests } from '../support/attack.ts';
import { kernelUsers, openKernel, type Weakening } from '../support/sandbox-client.ts';

const NO_FILTER: Weakening = { without: SECCOMP_ARGUMENTS };
const EVERY_CAPABILITY = '--bounding-set=-all,+setuid,+setgid,+kill,+net_bind_service';

/** Numbers of x86_64 and arm64. Each program prints `through` when the system kernel did what was asked. */
const call = (x64: number, arm64: number, args: string, fits = '>= 0'): string =>
  `my $nr = \`uname -m\` =~ /aarch64/ ? ${arm64} : ${x64}; my $buffer = "\\0" x 256; print "through" if syscall($nr, ${args}) ${fits}; print " $!"`;

const program =
  (text: string, as = {}): AttackStep =>
  async (sandbox) => {
    const { stdout, stderr } = await sandbox.tool(['perl', '-e', text], as);
    return { through: stdout.startsWith('through'), evidence: `${stdout}${stderr}` };
  };

const EXECUTOR = { uid: 0, gid: 0 };

/** Calls that this kernel grants to a tool when no filter is loaded. */
const REFUSED = {
  'makes an io_uring': call(425, 425, '8, $buffer'),
  'traces a child of its own':
    'use POSIX; my $nr = `uname -m` =~ /aarch64/ ? 117 : 101; my $p = fork; if (!$p) { exit(syscall($nr, 0, 0, 0, 0) == 0 ? 7 : 0) } waitpid $p, 0; print "through" if $? >> 8 == 7',
  'compares two processes': call(312, 272, '$$ + 0, $$ + 0, 0, 0, 0'),
  'reads memory of a process':
    'my $nr = `uname -m` =~ /aarch64/ ? 270 : 310; my ($from, $to) = ("secret!!", "\\0" x 8); my $l = pack("PQ", $to, 8); my $r = pack("PQ", $from, 8); print "through" if syscall($nr, $$ + 0, $l, 1, $r, 1, 0) == 8',
  'takes a descriptor of a process': 'my $nr = 438; my $fd = syscall(434, $$ + 0, 0); print "through" if syscall($nr, $fd, 1, 0) >= 0',
  'makes a key':
    'my $nr = `uname -m` =~ /aarch64/ ? 217 : 248; my ($t, $d, $p) = ("user", "k", "v"); print "through" if syscall($nr, $t, $d, $p, 1, -2) >= 0',
  'makes a user fault descriptor': call(323, 282, '1'),
  'makes memory that the kernel cannot read': call(447, 447, '0'),
  'opens a performance counter':
    'my $nr = `uname -m` =~ /aarch64/ ? 241 : 298; my $attr = pack("LLQQQQQ", 1, 112, 0, 0, 0, 0, 0x60) . "\\0" x 72; print "through" if syscall($nr, $attr, 0, -1, -1, 0) >= 0; print " $!"',
} as const;

attackTests([
  ...Object.entries(REFUSED).map(
    ([title, text]) =>
      ({
        threat: 'T15',
        title,
        actor: 'tool',
        attempt: program(text),
        control: { when: 'no filter is loaded', weakening: NO_FILTER },
      }) as const,
  ),
  {
    threat: 'T10',
    title: 'opens a socket of the hypervisor (AF_VSOCK)',
    actor: 'tool',
    attempt: program('print "through" if socket(my $s, 40, 1, 0); print " $!"'),
    control: { when: 'no filter is loaded', weakening: NO_FILTER },
  },
  {
    threat: 'T10',
    title: 'opens a socket of the system kernel (AF_NETLINK)',
    actor: 'tool',
    attempt: program('print "through" if socket(my $s, 16, 3, 0); print " $!"'),
    control: { when: 'no filter is loaded', weakening: NO_FILTER },
  },
  {
    threat: 'T15',
    title: 'mounts a file system',
    actor: 'executor',
    attempt: async (sandbox) => {
      const { code, stderr } = await sandbox.tool(['mount', '-t', 'tmpfs', 'none', '/tmp'], EXECUTOR);
      return { through: code === 0, evidence: `exit ${code} ${stderr}` };
    },
    control: {
      when: 'no filter is loaded and the executor keeps SYS_ADMIN',
      weakening: {
        ...NO_FILTER,
        replace: {
          CAP_NET_BIND_SERVICE: ['CAP_NET_BIND_SERVICE', '--cap-add', 'CAP_SYS_ADMIN'],
          [EVERY_CAPABILITY]: ['--bounding-set=+all'],
        },
      },
    },
  },
  {
    threat: 'T15',
    title: 'takes the mount API, with every capability in its hands',
    actor: 'executor',
    attempt: program(
      'my $t = "tmpfs"; print "through" if syscall(430, $t, 0) >= 0; print " $!"', // fsopen
      EXECUTOR,
    ),
    control: {
      when: 'no filter is loaded',
      weakening: {
        ...NO_FILTER,
        replace: {
          CAP_NET_BIND_SERVICE: ['CAP_NET_BIND_SERVICE', '--cap-add', 'CAP_SYS_ADMIN'],
          [EVERY_CAPABILITY]: ['--bounding-set=+all'],
        },
      },
    },
  },
]);

describe('T15 either guard alone', () => {
  const nest: AttackStep = async (sandbox) => {
    const { code, stderr } = await sandbox.tool(['unshare', '--user', '--map-root-user', '--net', 'true']);
    return { through: code === 0, evidence: `exit ${code} ${stderr}` };
  };
  const cases: readonly (readonly [string, Weakening, boolean])[] = [
    ['the filter alone refuses nested namespaces', { limits: {} }, false],
    ['the limit alone refuses nested namespaces', NO_FILTER, false],
    ['control: without both they are made', { ...NO_FILTER, limits: {} }, true],
  ];
  for (const user of kernelUsers()) {
    for (const [title, weakening, through] of cases) {
      it(`T15 ${title} (${user.name})`, async () => {
        await using kernel = await openKernel(user);
        const result = await nest(await kernel.start({ weakening }), { kernel, user, hostDir: '' });
        expect(result, result.evidence).toMatchObject({ through });
      });
    }
  }

  it('T12 the filter alone refuses to type into a terminal, with junk above the request too', async () => {
    const [user] = kernelUsers();
    if (user === undefined) throw new Error('no user');
    await using kernel = await openKernel(user);
    // A pseudo terminal of the sandbox's own, which the kernel lets its session type into.
    const type = `use Fcntl; use POSIX; $| = 1; $SIG{HUP} = "IGNORE"; sysopen(my $m, '/dev/ptmx', O_RDWR|O_NOCTTY) or die; my $u = pack('i', 0); ioctl($m, 0x40045431, $u); my $n = pack('i', 0); ioctl($m, 0x80045430, $n);
      POSIX::setsid(); open(my $s, '+<', '/dev/pts/' . unpack('i', $n)) or die "pts: $!"; ioctl($s, 0x540e, 0); my $byte = 'x';
      my $ioctl = \`uname -m\` =~ /aarch64/ ? 29 : 16;
      for my $request (0x5412, 0x100005412) { print syscall($ioctl, fileno($s), $request, $byte) == 0 ? 'through ' : "$!{EPERM} " }`;
    const run = async (weakening?: Weakening) =>
      (await (await kernel.start(weakening === undefined ? {} : { weakening })).tool(['perl', '-e', type])).stdout.trim();
    expect(await run()).toMatch(/^[1-9]\d* [1-9]\d*$/);
    // TIOCSTI may be off on this machine altogether (dev.tty.legacy_tiocsti); then only the filter's answer can be looked at.
    const legacy = readFileSync('/proc/sys/dev/tty/legacy_tiocsti', 'utf8').trim() === '1';
    expect(await run(NO_FILTER)).toBe(legacy ? 'through through' : '0 0');
  });
});

describe('T15 calls of another architecture', () => {
  /** getpid through the 32-bit entry; `through` with the pid. */
  const SOURCE =
    '#include <stdio.h>\nint main(void){long r;__asm__ volatile("int $0x80":"=a"(r):"a"(20L):"memory");if(r>0)puts("through");return 0;}\n';

  it('T15 end the process; without the filter they work', async () => {
    if (process.arch !== 'x64') return; // The other machine has no such entry.
    const dir = mkdtempSync('/var/tmp/outwork-i386-');
    writeFileSync(join(dir, 'a.c'), SOURCE.replaceAll('\\\n', '\n'));
    execFileSync('gcc', ['-O1', '-o', join(dir, 'a'), join(dir, 'a.c')]);
    const binary = readFileSync(join(dir, 'a')).toString('base64');
    rmSync(dir, { recursive: true });
    for (const user of kernelUsers()) {
      await using kernel = await openKernel(user);
      const run = async (weakening?: Weakening) => {
        const sandbox = await kernel.start(weakening === undefined ? {} : { weakening });
        await sandbox.tool(['sh', '-c', 'base64 -d >prog && chmod +x prog'], { stdin: binary });
        return sandbox.tool(['./prog']);
      };
      expect(await run()).toMatchObject({ signal: 'SIGSYS', stdout: '' });
      expect(await run(NO_FILTER)).toMatchObject({ code: 0, stdout: 'through\n' });
    }
  });

  it('T15 the x32 numbers end the process', async () => {
    if (process.arch !== 'x64') return;
    const [user] = kernelUsers();
    if (user === undefined) throw new Error('no user');
    await using kernel = await openKernel(user);
    const sandbox = await kernel.start();
    expect(await sandbox.tool(['perl', '-e', 'syscall(0x40000000 + 39); print "on"'])).toMatchObject({ signal: 'SIGSYS', stdout: '' });
    const open = await kernel.start({ weakening: NO_FILTER });
    expect(await open.tool(['perl', '-e', 'syscall(0x40000000 + 39); print "on"'])).toMatchObject({ code: 0, stdout: 'on' });
  });
});
