import type { CallPolicyInput, EgressPolicyInput, PlacementPolicyInput, TriggerPolicyInput } from '../../core/policy/types.ts';
import { toRegoInput } from './marshal.ts';
import { PROBE_IDENTITY, PROBE_SEAT } from './probe.ts';

/**
 * Inputs, as JSON, that a new worker evaluates before it may be asked. The machine code of a module is made when a function is first
 * called; on a slow machine that alone could use up the deadline, and every replacement would fail like the one before.
 */
export function warmUpInputs(): readonly string[] {
  const base = { ...PROBE_IDENTITY, ...PROBE_SEAT };
  const placement: PlacementPolicyInput = { ...base, kind: 'placement', harness: 'native', profile: 'production' };
  const request: EgressPolicyInput = {
    ...base,
    kind: 'egress',
    permit: 'prm',
    scheme: 'https',
    method: 'GET',
    host: 'api.example.com',
    port: 443,
    path: '/a/b%20c',
    query: [],
    headers: [{ name: 'host', value: 'api.example.com' }],
    operations: [],
    operationsParsed: true,
    recipe: '',
    credential: 'present',
  };
  const hosts = ['api.example.com', '93.184.216.34', '2606:2800:220:1::1'];
  const requests = hosts.map((host) => ({ ...request, host }));
  const trigger: TriggerPolicyInput = {
    ...PROBE_IDENTITY,
    kind: 'trigger',
    action: 'create',
    caller: 'executor',
    source: 'schedule',
    schedule: '0 9 * * 1',
    bodyDigest: '0'.repeat(64),
  };
  const shell = (argv: readonly string[]): CallPolicyInput => ({
    ...base,
    kind: 'call',
    capability: 'shell.exec',
    caller: 'executor',
    effectClass: 'once',
    args: { argv, argv_length: argv.length, cwd: '.', env: ['LANG'], stdin_bytes: 0, background: false },
    argsDigest: '0'.repeat(64),
    callsUsed: 0,
    callsLeft: 1,
    wallMsLeft: 1,
    sandboxOrigins: ['interactive'],
    otherActors: [],
    credential: 'none',
    recipe: '',
  });
  const commands = [
    ['git', 'log', '--oneline', '--since=1d', 'HEAD'],
    ['sh', '-c', 'ls'],
    ['ls', '-la', '.'],
  ];
  return [placement, trigger, ...requests, ...commands.map(shell)].map((input) => JSON.stringify(toRegoInput(input)));
}
