import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DockerRule, dockerSeccompProfile } from '../../../adapters/sandbox/seccomp/docker-profile.ts';
import { seccompFilter } from '../../../adapters/sandbox/seccomp/filter.ts';
import { EAFNOSUPPORT, ENOSYS, EPERM, type SeccompArch } from '../../../adapters/sandbox/seccomp/rule.ts';
import { SYSCALLS } from '../../../adapters/sandbox/seccomp/table.ts';
import { ALLOWED, failed, KILLED, runFilter } from '../../support/bpf-machine.ts';

const ARCHES = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
const FILTERS = { x64: seccompFilter('x64'), arm64: seccompFilter('arm64') } as const;
const I386 = 0x4000_0003;
const ARM = 0x4000_0028;
const X32 = 0x4000_0000;

const numberOf = (name: string, arch: SeccompArch): number | null => {
  const row = SYSCALLS.find(([found]) => found === name);
  if (row === undefined) throw new Error(`${name} is not in the table`);
  return arch === 'x64' ? row[1] : row[2];
};

const bits = (args: readonly (number | bigint)[]): bigint[] => args.map((value) => BigInt(value));

function verdict(arch: SeccompArch, name: string, ...args: (number | bigint)[]): number | undefined {
  const number = numberOf(name, arch);
  return number === null ? undefined : runFilter(FILTERS[arch], { number, arch: ARCHES[arch], args: bits(args) });
}

/** Calls by what must come of them: what the design names, and a few that real programs stand on. Undefined flags mean: whatever they are. */
type Call = readonly [outcome: number, name: string, ...args: (number | bigint)[]];
const CALLS: readonly Call[] = [
  [ALLOWED, 'read'],
  [ALLOWED, 'openat'],
  [ALLOWED, 'execve'],
  [ALLOWED, 'fork'],
  [ALLOWED, 'setresuid'],
  [ALLOWED, 'setgroups'],
  [ALLOWED, 'kill'],
  [ALLOWED, 'seccomp'],
  [ALLOWED, 'restart_syscall'],
  [ALLOWED, 'rseq'],
  [ALLOWED, 'mknodat'],
  [ALLOWED, 'clone', 0x3d_0f00],
  [ALLOWED, 'clone', 0x0100_0011 | 0x80],
  [ALLOWED, 'unshare', 0x400],
  [ALLOWED, 'socket', 1],
  [ALLOWED, 'socket', 2],
  [ALLOWED, 'socket', 10],
  [ALLOWED, 'socketpair', 1],
  [ALLOWED, 'ioctl', 0, 0x5401],
  [ALLOWED, 'ioctl', 0, 0x5413],
  [ALLOWED, 'personality', 0xffff_ffff],
  [failed(ENOSYS), 'clone3'],
  ...['io_uring_setup', 'io_uring_enter', 'io_uring_register', 'setns', 'ptrace', 'process_vm_readv', 'process_vm_writev'].map(
    (name) => [failed(EPERM), name] as const,
  ),
  ...['process_madvise', 'pidfd_getfd', 'kcmp', 'add_key', 'request_key', 'keyctl', 'bpf', 'perf_event_open', 'userfaultfd'].map(
    (name) => [failed(EPERM), name] as const,
  ),
  ...['open_by_handle_at', 'memfd_secret', 'mount', 'umount2', 'pivot_root', 'move_mount', 'open_tree', 'fsopen', 'fsconfig'].map(
    (name) => [failed(EPERM), name] as const,
  ),
  ...['fsmount', 'fspick', 'mount_setattr', 'open_tree_attr', 'chroot', 'kexec_load', 'init_module', 'reboot', 'swapon'].map(
    (name) => [failed(EPERM), name] as const,
  ),
  ...[0x2_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000].flatMap((flag) => [
    [failed(EPERM), 'clone', flag | 17] as const,
    [failed(EPERM), 'unshare', flag | 0x400] as const,
  ]),
  [failed(EPERM), 'unshare', 0x80],
  [failed(EPERM), 'clone', 0xffff_ffff_1000_0000n],
  ...[0, 3, 16, 17, 38, 40, 44].flatMap((family) => [
    [failed(EAFNOSUPPORT), 'socket', family] as const,
    [failed(EAFNOSUPPORT), 'socketpair', family] as const,
  ]),
  [failed(EPERM), 'ioctl', 0, 0x5412],
  [failed(EPERM), 'ioctl', 0, 0x541c],
  // The kernel reads 32 bits: what stands above them must not hide the request.
  [failed(EPERM), 'ioctl', 0, 0x1_0000_5412n],
  [failed(EPERM), 'ioctl', 0, 0xffff_ffff_0000_541cn],
  [failed(EPERM), 'personality', 0x4_0000],
];

const named = ([outcome, name, ...args]: Call) => ({ outcome, name, args, title: `${name} ${args.join(' ')}`.trim() });

describe.each(['x64', 'arm64'] as const)('the filter for %s', (arch) => {
  it.each(CALLS.map(named))('T10 T15 answers to $title', ({ outcome, name, args }) => {
    const number = numberOf(name, arch);
    if (number === null) expect(['fork']).toContain(name);
    else expect(verdict(arch, name, ...args)).toBe(outcome);
  });

  it('a call that the table does not name does not exist', () => {
    const known = new Set(SYSCALLS.map((row) => (arch === 'x64' ? row[1] : row[2])));
    for (let number = 0; number < 700; number += 1) {
      if (known.has(number)) continue;
      expect(runFilter(FILTERS[arch], { number, arch: ARCHES[arch], args: [] }), String(number)).toBe(failed(ENOSYS));
    }
  });

  it('a call of another architecture ends the process', () => {
    for (const other of [I386, ARM, ARCHES[arch === 'x64' ? 'arm64' : 'x64'], 0]) {
      expect(runFilter(FILTERS[arch], { number: 20, arch: other, args: [] })).toBe(KILLED);
    }
  });

  it('the x32 numbers end the process on x86_64, and do not exist elsewhere', () => {
    for (const number of [X32, X32 + 39, 0xffff_ffff]) {
      expect(runFilter(FILTERS[arch], { number, arch: ARCHES[arch], args: [] })).toBe(arch === 'x64' ? KILLED : failed(ENOSYS));
    }
  });

  it('no number is used twice', () => {
    const numbers = SYSCALLS.map((row) => (arch === 'x64' ? row[1] : row[2])).filter((number) => number !== null);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

describe('Docker’s profile of the same table', () => {
  const profile = dockerSeccompProfile();

  /** All rules that fit a call, as libseccomp compares: 64 bits wide. */
  const fitting = (name: string, args: readonly bigint[]): DockerRule[] =>
    profile.syscalls.filter(
      (rule) =>
        rule.names.includes(name) &&
        (rule.args ?? []).every(({ index, value, valueTwo }) => ((args[index] ?? 0n) & BigInt(value)) === BigInt(valueTwo)),
    );
  const docker = (name: string, args: readonly bigint[]): number => {
    const [rule, ...more] = fitting(name, args);
    expect(more, `${name} ${args}`).toEqual([]);
    if (rule?.action === 'SCMP_ACT_ALLOW') return ALLOWED;
    return failed(rule === undefined ? profile.defaultErrnoRet : (rule.errnoRet ?? EPERM));
  };

  it.each(CALLS.map(named))('answers to $title', ({ outcome, name, args }) => {
    expect(docker(name, bits(args))).toBe(outcome);
  });

  it('says to every call what the BPF program says, and no two rules fit one call', () => {
    const interesting = fc.oneof(
      fc.constantFrom(...CALLS.flatMap(([, , ...args]) => bits(args))),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.bigInt({ min: 0n, max: 64n }),
    );
    const conditional = SYSCALLS.filter(([, , , rule]) => typeof rule !== 'string');
    fc.assert(
      fc.property(fc.constantFrom(...conditional, ...SYSCALLS), fc.tuple(interesting, interesting), ([name, x64, arm64], args) => {
        if (x64 !== null) expect(docker(name, args)).toBe(runFilter(FILTERS.x64, { number: x64, arch: ARCHES.x64, args }));
        if (arm64 !== null) expect(docker(name, args)).toBe(runFilter(FILTERS.arm64, { number: arm64, arch: ARCHES.arm64, args }));
      }),
      { numRuns: 2000 },
    );
  });

  it('knows no architecture but the two, not even i386 as a part of x86_64', () => {
    expect(profile.archMap).toEqual([
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ]);
  });
});

it('a table with one rule changed has another filter', () => {
  const weaker = SYSCALLS.map((row) => (row[0] === 'ptrace' ? ([row[0], row[1], row[2], 'allow'] as const) : row));
  expect(seccompFilter('x64', weaker)).not.toEqual(FILTERS.x64);
});
