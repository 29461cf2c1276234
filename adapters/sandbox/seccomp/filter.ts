import { branch, encode, type Fragment, give, load } from './bpf.ts';
import { type ArgumentRule, ENOSYS, EPERM, type Row, type Rule, type SeccompArch } from './rule.ts';
import { SYSCALLS } from './table.ts';

/** Offsets in `struct seccomp_data`; arguments are 64 bits wide, low word first on the machines we know. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const lowWord = (argument: number): number => 16 + 8 * argument;

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
const AUDIT_ARCH = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
/** Numbers from here on are the x32 ABI, which is the same architecture to the kernel. */
const X32 = 0x4000_0000;

const ALLOW = give(0x7fff_0000);
const KILL = give(0x8000_0000);
const fail = (errno: number): Fragment => give(0x0005_0000 + errno);

/**
 * The BPF program for bubblewrap's `--seccomp`. A call of another architecture, or of x32, ends the process: its numbers mean other calls.
 * `table` is for tests that weaken it.
 */
export function seccompFilter(arch: SeccompArch, table: readonly Row[] = SYSCALLS): Uint8Array {
  const known = search(segments(arch, table));
  const numbers = arch === 'x64' ? branch('jumpAtLeast', X32, KILL, known) : known;
  return encode(load(ARCHITECTURE, branch('jumpEqual', AUDIT_ARCH[arch], load(NUMBER, numbers), KILL)));
}

interface Segment {
  readonly from: number;
  readonly fragment: Fragment;
}

/** Runs of numbers with one answer, ascending, from 0 on without a gap. */
function segments(arch: SeccompArch, table: readonly Row[]): Segment[] {
  const rules = new Map<number, Rule>();
  for (const [, x64, arm64, rule] of table) {
    const number = arch === 'x64' ? x64 : arm64;
    if (number !== null) rules.set(number, rule);
  }
  const found: Segment[] = [];
  let last: Rule | undefined;
  const end = Math.max(...rules.keys()) + 1;
  for (let number = 0; number <= end; number += 1) {
    const rule = rules.get(number) ?? 'absent';
    if (rule !== last) found.push({ from: number, fragment: answer(rule) });
    last = rule;
  }
  return found;
}

/** Finds the segment of the loaded number by halving. */
function search(all: readonly Segment[]): Fragment {
  const [only] = all;
  if (only === undefined) return fail(ENOSYS);
  if (all.length === 1) return only.fragment;
  const middle = all.length >> 1;
  const right = all.slice(middle);
  return branch('jumpAtLeast', right[0]?.from ?? 0, search(right), search(all.slice(0, middle)));
}

function answer(rule: Rule): Fragment {
  if (rule === 'allow') return ALLOW;
  if (rule === 'refuse') return fail(EPERM);
  if (rule === 'absent') return fail(ENOSYS);
  return load(lowWord(rule.argument), onArgument(rule));
}

function onArgument(rule: ArgumentRule): Fragment {
  const no = fail(rule.errno);
  if (rule.kind === 'without') return branch('jumpSet', rule.bits, no, ALLOW);
  const [hit, miss] = rule.kind === 'only' ? [ALLOW, no] : [no, ALLOW];
  return rule.values.reduceRight<Fragment>((rest, value) => branch('jumpEqual', value, hit, rest), miss);
}
