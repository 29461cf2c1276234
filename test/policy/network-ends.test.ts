import { expect, test } from 'vitest';
import { networkEnds } from '../../adapters/policy/network-ends.ts';

test.each([
  ['198.41.0.0/24', ['198.41.0.0', '198.41.0.255']],
  ['198.41.0.77/22', ['198.41.0.0', '198.41.3.255']],
  ['198.41.0.4/32', ['198.41.0.4']],
  ['2606:2800::/32', ['2606:2800:0:0:0:0:0:0', '2606:2800:ffff:ffff:ffff:ffff:ffff:ffff']],
  ['2606:2800:220:1::1/128', ['2606:2800:220:1:0:0:0:1']],
  ['nonsense', []],
  ['1.2.3/24', []],
  ['1.2.3.4/33', []],
])('%s: first and last', (network, ends) => expect(networkEnds(network)).toEqual(ends));
