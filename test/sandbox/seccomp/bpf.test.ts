import { describe, expect, it } from 'vitest';
import { branch, encode, type Fragment, give, load } from '../../../adapters/sandbox/seccomp/bpf.ts';
import { runFilter } from '../../support/bpf-machine.ts';

const run = (program: Fragment, number: number) => runFilter(encode(program), { number, arch: 0, args: [] });

describe('BPF fragments', () => {
  it.each([
    ['jumpEqual', 5, [5], [4, 6]],
    ['jumpAtLeast', 5, [5, 6, 0xffff_ffff], [0, 4]],
    ['jumpSet', 0x8000_0001, [1, 0x8000_0000, 3], [0, 2]],
  ] as const)('%s %i takes its branches', (test, k, hits, misses) => {
    const program = load(0, branch(test, k, give(1), give(2)));
    expect(hits.map((number) => run(program, number))).toEqual(hits.map(() => 1));
    expect(misses.map((number) => run(program, number))).toEqual(misses.map(() => 2));
  });

  it('a branch longer than a conditional jump reaches still takes both ways', () => {
    let long: Fragment = give(1);
    for (let i = 0; i < 300; i += 1) long = branch('jumpEqual', 1000 + i, give(2000 + i), long);
    const program = load(0, branch('jumpEqual', 7, give(7), branch('jumpAtLeast', 100, long, give(3))));
    expect([7, 8, 100, 1000, 1299, 1300].map((number) => run(program, number))).toEqual([7, 3, 1, 2000, 2299, 1]);
  });

  it('a program that the kernel would refuse is not encoded', () => {
    expect(() => encode(Array.from({ length: 4097 }, () => give(0)[0] as Fragment[number]))).toThrow(RangeError);
  });
});
