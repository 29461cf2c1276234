import type { CapabilityName } from '../../../core/capability/types.ts';
import type { Json } from '../../../core/json.ts';
import type { CallPolicyInput, PlacementPolicyInput } from '../../../core/policy/types.ts';

export const IDENTITY = {
  version: 1,
  scope: { tenant: 'acme', user: 'ada', thread: 'thr_01', run: 'run_01' },
  actor: { user: 'ada', roles: ['user'] },
  origin: 'interactive',
  time: '1700000000000',
} as const;

export const SEAT = { placement: 'host-loop-shell', engine: 'bubblewrap', wall: 'namespaces' } as const;

export function callInput(change: Partial<CallPolicyInput> = {}): CallPolicyInput {
  return {
    ...IDENTITY,
    ...SEAT,
    kind: 'call',
    capability: 'shell.exec',
    caller: 'executor',
    effectClass: 'once',
    args: shellArgs(['make']),
    argsDigest: 'ab'.repeat(32),
    callsUsed: 3,
    callsLeft: 1997,
    wallMsLeft: 1_800_000,
    sandboxOrigins: ['interactive'],
    otherActors: [],
    credential: 'none',
    recipe: '',
    ...change,
  };
}

export const shellArgs = (argv: readonly string[], change: { [key: string]: Json } = {}): Json => ({
  argv,
  argv_length: argv.length,
  cwd: '.',
  env: [],
  stdin_bytes: 0,
  background: false,
  ...change,
});

export const shellInput = (argv: readonly string[], change: { [key: string]: Json } = {}): CallPolicyInput =>
  callInput({ args: shellArgs(argv, change) });

export const plainInput = (capability: CapabilityName, change: Partial<CallPolicyInput> = {}): CallPolicyInput =>
  callInput({ capability, effectClass: 'pure', args: {}, ...change });

export const placementInput = (change: Partial<PlacementPolicyInput> = {}): PlacementPolicyInput => ({
  ...IDENTITY,
  ...SEAT,
  kind: 'placement',
  harness: 'native',
  profile: 'development',
  ...change,
});
