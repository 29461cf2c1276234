/** One instruction of a classic BPF program, as `struct sock_filter` has it. */
export interface Instruction {
  readonly code: number;
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly k: number;
}

/** A piece of program that always ends in a return: pieces are put together by branches, so no jump is ever counted by hand. */
export type Fragment = readonly Instruction[];

/** Classic BPF operations that a filter needs (linux/bpf_common.h). */
export const BPF = { loadWord: 0x20, jump: 0x05, jumpEqual: 0x15, jumpAtLeast: 0x35, jumpSet: 0x45, return: 0x06 } as const;

export type Test = 'jumpEqual' | 'jumpAtLeast' | 'jumpSet';

/** Conditional jumps reach that far; the unconditional one reaches everything. */
const SHORT = 255;

const instruction = (code: number, k: number, jumpTrue = 0, jumpFalse = 0): Instruction => ({ code, jumpTrue, jumpFalse, k });

export const give = (value: number): Fragment => [instruction(BPF.return, value)];

/** Loads a word of `struct seccomp_data` and goes on with `then`. */
export const load = (offset: number, then: Fragment): Fragment => [instruction(BPF.loadWord, offset), ...then];

/** Goes on with `whenTrue` when the loaded word equals `k`, is at least `k`, or shares a bit with it; else with `whenFalse`. */
export function branch(test: Test, k: number, whenTrue: Fragment, whenFalse: Fragment): Fragment {
  if (whenTrue.length <= SHORT) return [instruction(BPF[test], k, 0, whenTrue.length), ...whenTrue, ...whenFalse];
  return [instruction(BPF[test], k, 0, 1), instruction(BPF.jump, 1), instruction(BPF.jump, whenTrue.length), ...whenTrue, ...whenFalse];
}

/** The bytes that seccomp(2) takes, for a little-endian machine. @throws RangeError when the program is longer than the kernel admits */
export function encode(program: Fragment): Uint8Array {
  if (program.length > 4096) throw new RangeError(`a filter has at most 4096 instructions; this one has ${program.length}`);
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(({ code, jumpTrue, jumpFalse, k }, i) => {
    bytes.setUint16(i * 8, code, true);
    bytes.setUint8(i * 8 + 2, jumpTrue);
    bytes.setUint8(i * 8 + 3, jumpFalse);
    bytes.setUint32(i * 8 + 4, k, true);
  });
  return new Uint8Array(bytes.buffer);
}
