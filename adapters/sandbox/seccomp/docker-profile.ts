import { type ArgumentRule, ENOSYS, EPERM, type Row, type Rule } from './rule.ts';
import { SYSCALLS } from './table.ts';

/** A seccomp profile as `docker run --security-opt seccomp=FILE` takes it. */
export interface DockerSeccompProfile {
  readonly defaultAction: 'SCMP_ACT_ERRNO';
  readonly defaultErrnoRet: number;
  readonly archMap: readonly { readonly architecture: string; readonly subArchitectures: readonly string[] }[];
  readonly syscalls: readonly DockerRule[];
}

export interface DockerRule {
  readonly names: readonly string[];
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  readonly errnoRet?: number;
  readonly args?: readonly DockerArgument[];
}

/** `SCMP_CMP_MASKED_EQ`: argument AND `value` equals `valueTwo`. */
export interface DockerArgument {
  readonly index: number;
  readonly value: number;
  readonly valueTwo: number;
  readonly op: 'SCMP_CMP_MASKED_EQ';
}

/** Some bits of a 32-bit word, and what they must be. */
interface Cube {
  readonly mask: number;
  readonly value: number;
}

const WORD = 0xffff_ffff;

/**
 * Docker's profile of the same table. Its comparisons are 64 bits wide and one rule cannot compare one argument twice, so each set of
 * 32-bit values is written as masks; no two rules of one call overlap. Other architectures, i386 and x32 among them, are no part of it:
 * the runtime ends a process that calls through one.
 */
export function dockerSeccompProfile(table: readonly Row[] = SYSCALLS): DockerSeccompProfile {
  const named = (rule: Rule) => table.filter((row) => row[3] === rule).map(([name]) => name);
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: ENOSYS,
    archMap: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'].map((architecture) => ({ architecture, subArchitectures: [] })),
    syscalls: [
      { names: named('allow'), action: 'SCMP_ACT_ALLOW' },
      { names: named('refuse'), action: 'SCMP_ACT_ERRNO', errnoRet: EPERM },
      // Said once more: runtimes that do not know `defaultErrnoRet` would answer EPERM, and programs would not fall back.
      { names: named('absent'), action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      ...table.flatMap(([name, , , rule]) => (typeof rule === 'string' ? [] : argumentRules(name, rule))),
    ],
  };
}

function argumentRules(name: string, rule: ArgumentRule): DockerRule[] {
  const { allowed, refused } = cubesOf(rule);
  const args = ({ mask, value }: Cube) => [{ index: rule.argument, value: mask, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' } as const];
  return [
    ...allowed.map((cube): DockerRule => ({ names: [name], action: 'SCMP_ACT_ALLOW', args: args(cube) })),
    ...refused.map((cube): DockerRule => ({ names: [name], action: 'SCMP_ACT_ERRNO', errnoRet: rule.errno, args: args(cube) })),
  ];
}

function cubesOf(rule: ArgumentRule): { allowed: readonly Cube[]; refused: readonly Cube[] } {
  if (rule.kind === 'without') return { allowed: [{ mask: rule.bits, value: 0 }], refused: anyBitOf(rule.bits) };
  const named = rule.values.map((value) => ({ mask: WORD, value }));
  const others = allBut(rule.values);
  return rule.kind === 'only' ? { allowed: named, refused: others } : { allowed: others, refused: named };
}

/** Every word that has at least one of `bits`, by its lowest one. */
function anyBitOf(bits: number): Cube[] {
  const cubes: Cube[] = [];
  let below = 0;
  for (let bit = 1; bit <= bits; bit *= 2) {
    if (Math.floor(bits / bit) % 2 === 0) continue;
    below += bit;
    cubes.push({ mask: below, value: bit });
  }
  return cubes;
}

/** Every word that is none of `values`: the largest sub-trees of the binary tree of words that hold none. */
function allBut(values: readonly number[], mask = 0, prefix = 0, bit = 2 ** 31): Cube[] {
  if (values.length === 0) return [{ mask, value: prefix }];
  if (bit < 1) return [];
  const has = (value: number) => Math.floor(value / bit) % 2 === 1;
  return [
    ...allBut(
      values.filter((value) => !has(value)),
      mask + bit,
      prefix,
      bit / 2,
    ),
    ...allBut(values.filter(has), mask + bit, prefix + bit, bit / 2),
  ];
}
