import { describe, expect, it } from 'vitest';
import { type Bound, fingerprintOf } from '../../core/approval/fingerprint.ts';

const BOUND: Bound = {
  tenant: 'acme',
  thread: 'thr_1',
  run: 'run_1',
  key: { step: 1, call: 2 },
  actor: 'ada',
  capability: 'shell.exec',
  args: { argv: ['transfer', '100'], env: { A: '1', B: '2' } },
  ceiling: { startedBy: 'kernel', leases: [], hosts: [], outputBytes: 1024, wallMs: 1000 },
  digests: { rules: 'r', data: 'd' },
  files: [{ argument: 0, path: 'a.sh', sha256: '0'.repeat(64), size: 3 }],
  shown: { text: 'transfer 100', warnings: [] },
};
const of = (change: Partial<Bound>) => fingerprintOf({ ...BOUND, ...change });

describe('the fingerprint of an ask', () => {
  it.each<[string, Partial<Bound>]>([
    ['the tenant', { tenant: 'other' }],
    ['the thread', { thread: 'thr_2' }],
    ['the run', { run: 'run_2' }],
    ['the step', { key: { step: 2, call: 2 } }],
    ['the call', { key: { step: 1, call: 3 } }],
    ['the actor', { actor: 'eve' }],
    ['the capability', { capability: 'fs.write' }],
    ['an argument', { args: { argv: ['transfer', '10000'], env: { A: '1', B: '2' } } }],
    ['an argument more', { args: { argv: ['transfer', '100'], env: { A: '1', B: '2' }, cwd: '.' } }],
    ['who starts it', { ceiling: { ...BOUND.ceiling, startedBy: 'executor' } }],
    ['a host', { ceiling: { ...BOUND.ceiling, hosts: ['a.example'] } }],
    ['a lease', { ceiling: { ...BOUND.ceiling, leases: [{ recipe: 'gh', operations: ['read'] }] } }],
    ['the time it may take', { ceiling: { ...BOUND.ceiling, wallMs: 1001 } }],
    ['the rules', { digests: { rules: 'r2', data: 'd' } }],
    ['the data', { digests: { rules: 'r', data: 'd2' } }],
    ['the bytes of a file', { files: [{ ...(BOUND.files[0] as Bound['files'][0]), sha256: '1'.repeat(64) }] }],
    ['a file less', { files: [] }],
    ['the text shown', { shown: { text: 'transfer 10', warnings: [] } }],
    ['a warning', { shown: { text: 'transfer 100', warnings: [{ kind: 'cut', message: 'x' }] } }],
  ])('BL-122 changes with %s', (_, change) => {
    expect(of(change)).not.toBe(fingerprintOf(BOUND));
  });

  it('BL-122 does not change with the order of keys; null is not absent', () => {
    expect(of({ args: { env: { B: '2', A: '1' }, argv: ['transfer', '100'] } })).toBe(fingerprintOf(BOUND));
    expect(of({ args: { a: null } })).not.toBe(of({ args: {} }));
    expect(of({ args: { a: null } })).not.toBe(of({ args: { a: 'null' } }));
    expect(of({ args: { a: 1 } })).not.toBe(of({ args: { a: '1' } }));
  });

  it('BL-124 text of one part cannot pass for text of the next', () => {
    const pairs: [Partial<Bound>, Partial<Bound>][] = [
      [
        { tenant: 'a:b', thread: 'c' },
        { tenant: 'a', thread: 'b:c' },
      ],
      [
        { tenant: 'a', thread: '1:b' },
        { tenant: 'a1', thread: ':b' },
      ],
      [
        { tenant: 'a6:thread1:b', thread: '' },
        { tenant: 'a', thread: 'b' },
      ],
      [
        { run: 'x\0y', actor: 'z' },
        { run: 'x', actor: '\0yz' },
      ],
    ];
    for (const [one, other] of pairs) expect(of(one)).not.toBe(of(other));
  });
});
