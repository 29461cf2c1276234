/** First and last address of a network in prefix form, as rules read addresses; none for what is no network. */
export function networkEnds(network: string): readonly string[] {
  const [address = '', length = ''] = network.split('/');
  const groups = address.includes(':') ? sixGroups(address) : address.split('.').map(Number);
  const bits = groups.length === 4 ? 8n : 16n;
  if (!(groups.length === 4 || groups.length === 8) || groups.some(Number.isNaN) || !/^[0-9]+$/.test(length)) return [];
  const size = bits * BigInt(groups.length);
  const free = size - BigInt(length);
  if (free < 0n) return [];
  const value = groups.reduce((sum, group) => (sum << bits) | BigInt(group), 0n);
  const first = (value >> free) << free;
  const last = first | ((1n << free) - 1n);
  return [...new Set([first, last].map((end) => addressText(end, groups.length, bits)))];
}

function sixGroups(address: string): number[] {
  const [before = [], after] = address
    .split('::')
    .map((half) => (half === '' ? [] : half.split(':')).map((group) => Number.parseInt(group, 16)));
  return after === undefined
    ? before
    : [...before, ...Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => 0), ...after];
}

function addressText(value: bigint, count: number, bits: bigint): string {
  const groups = Array.from({ length: count }, (_, at) => (value >> (bits * BigInt(count - 1 - at))) & ((1n << bits) - 1n));
  return count === 4 ? groups.join('.') : groups.map((group) => group.toString(16)).join(':');
}
