import { isIP } from 'node:net';
import { getPublicSuffix } from 'tldts';

/**
 * Forms of text that a schema of `data/` may name as `format`, beside JSON Schema's own. They refuse what `outwork.lib.hosts` and
 * `outwork.lib.paths` would pass over in silence: an entry that never names anything, or one that names what anybody can register.
 */
export const DATA_FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'host-pattern': isHostPattern,
  'path-pattern': isPathPattern,
  network: isNetwork,
};

const LABELS = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)+$/;
/** A last label that some resolver reads as a number. */
const NUMERIC_END = /\.([0-9]+|0x[0-9a-f]*)$/;

/**
 * A full host name in its one form (lower case, no trailing dot, no port, two labels or more), or `*.` before one that is no public suffix
 * (publicsuffix.org, its private part too): below those anybody gets a name. An address is none; it belongs to a list of networks.
 */
export function isHostPattern(text: string): boolean {
  const wildcard = text.startsWith('*.');
  const name = wildcard ? text.slice(2) : text;
  if (name.length > 253 || !LABELS.test(name) || NUMERIC_END.test(name)) return false;
  return !wildcard || getPublicSuffix(name, { allowPrivateDomains: true, validateHostname: false }) !== name;
}

/** What a server could read in another way; `*` is a segment of its own, and `**` the last one. */
const UNCLEAN =
  /[^!-~]|[\\?#*]|^\.\.?(;|%3b|$)|%(?![0-9A-Fa-f]{2})|%([01].|2[5def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5[cf]|7[ef]|c[01]|f[5-9a-f]|e0%[89]|f0%8)/i;

/** A pattern of `outwork.lib.paths`: `/a/b`, one with `*` as a segment, `/public/**`. Paths that are not clean never match, so none names one. */
export function isPathPattern(text: string): boolean {
  const [before, ...segments] = text.split('/');
  if (before !== '' || segments.length === 0) return false;
  return segments.every((segment, at) => {
    const last = at === segments.length - 1;
    return segment === '*' || (segment === '**' && last) || ((segment !== '' || last) && !UNCLEAN.test(segment));
  });
}

/** Shorter prefixes would name a good part of all addresses. */
const SHORTEST_PREFIX: Readonly<Record<number, number>> = { 4: 8, 6: 16 };
const ADDRESS_BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 };

/** An address in its plain form, `/`, and the length of its prefix, at least 8 or 16 (IPv6) bits. */
export function isNetwork(text: string): boolean {
  const [, address = '', bits = ''] = /^([0-9a-f.:]+)\/([1-9][0-9]{0,2})$/.exec(text) ?? [];
  const family = address.includes(':') && address.includes('.') ? 0 : isIP(address);
  return Number(bits) >= (SHORTEST_PREFIX[family] ?? Number.POSITIVE_INFINITY) && Number(bits) <= (ADDRESS_BITS[family] ?? 0);
}
