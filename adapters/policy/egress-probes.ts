import { covers, deniedPatterns, type ListedEntry, listedEntries } from './egress-entries.ts';
import { networkEnds } from './network-ends.ts';
import { PROBE_IDENTITY, PROBE_SEAT, type Probe, type Probes } from './probe.ts';

/** More questions than this about one entry, or about all, are not asked. */
const MOST_OF_ONE = 256;
const MOST = 2_000;

/**
 * Requests about what two versions of data/egress.yaml name differently. Entries only add, each what its terms have in common, so a version
 * allows more exactly when one of its new entries admits something that was not admitted: all combinations of the terms of an entry are
 * asked, those with a new term first. An entry that an earlier one plainly covers needs no question. Where a denial goes, what is listed
 * there is asked.
 */
export function egressProbes(now: unknown, next: unknown): Probes {
  const [before, after] = [listedEntries(now), listedEntries(next)];
  const known = grouped(before);
  const added = after.filter((entry) => !known.get(keyOf(entry))?.some((one) => covers(one, entry)));
  const left = grouped(after);
  const removed = before.filter((entry) => !left.get(keyOf(entry))?.some((one) => covers(one, entry)));
  const freed = changed(deniedPatterns(now), deniedPatterns(next)).flatMap((pattern) => requestsBehind(pattern, [...before, ...after]));
  const asked: Probe[] = [];
  const unasked: string[] = [];
  for (const { about, hosts, entry } of [
    ...added.map((entry) => ({ about: `${entry.place}/${entry.key}`, hosts: hostsOf(entry), entry: newFirst(entry, known) })),
    ...freed,
  ]) {
    const requests = requestsOf(hosts, entry, MOST_OF_ONE + 1);
    if (requests.length > MOST_OF_ONE || asked.length + requests.length > MOST) unasked.push(about);
    asked.push(...requests.slice(0, Math.min(MOST_OF_ONE, MOST - asked.length)));
  }
  const gone = removed.slice(0, MOST).flatMap((entry) => requestsOf(hostsOf(entry), entry, 8));
  const faults = after.slice(0, 8).flatMap((entry) => faultyRequests(entry));
  return { probes: [...asked, ...gone, ...faults], unasked: summary([...new Set(unasked)]) };
}

/** A few by name, many by their number. */
function summary(places: readonly string[]): readonly string[] {
  if (places.length <= 5) return places.map((place) => `data/egress.yaml ${place}`);
  return [`data/egress.yaml ${places[0]} and ${places.length - 1} more places`];
}

/** Requests that a rule denies whatever is listed, so that a rule that goes is seen. */
function faultyRequests(entry: ListedEntry): Probe[] {
  return requestsOf(hostsOf(entry), entry, 1).flatMap(({ note, input }) => [
    { note: `${note}, operations unknown`, input: { ...input, credential: 'present', operations_parsed: false } },
    { note: `${note}, credential missing`, input: { ...input, credential: 'missing' } },
    { note: `${note}, two hosts`, input: { ...input, headers: ['host', 'Host'].map((name) => ({ name, value: 'x' })) } },
    { note: `${note}, path unclear`, input: { ...input, path: `${input.path}/../outwork-probe` } },
    { note: `${note}, port 1`, input: { ...input, port: 1 } },
  ]);
}

/** What is listed for hosts that a pattern of `denied` names. */
function requestsBehind(pattern: string, entries: readonly ListedEntry[]) {
  const named = entries.filter(({ place }) => place === 'hosts');
  const host = hostOf(pattern);
  const above = named.filter(({ key }) => key === host || (key.startsWith('*.') && host.endsWith(key.slice(1))));
  const below = pattern.startsWith('*.') ? named.filter(({ key }) => key.endsWith(pattern.slice(1))) : [];
  const about = `denied/${pattern}`;
  return [
    ...above.map((entry) => ({ about, hosts: [host], entry })),
    ...below.map((entry) => ({ about, hosts: [hostOf(entry.key)], entry })),
  ];
}

/** The combinations of an entry's terms as requests, at most so many. */
function requestsOf(hosts: readonly string[], entry: ListedEntry, most: number): Probe[] {
  const found: Probe[] = [];
  for (const host of hosts)
    for (const port of entry.ports)
      for (const scheme of entry.schemes)
        for (const method of entry.methods)
          for (const path of method === 'CONNECT' ? [''] : entry.paths.map(pathOf))
            for (const user of entry.users ?? ['outwork-probe'])
              for (const tenant of entry.tenants ?? ['outwork-probe'])
                for (const credential of entry.recipe === undefined ? ['none'] : ['present', 'none']) {
                  if (found.length >= most) return found;
                  found.push(request({ host, port, scheme, method, path, user, tenant, credential, recipe: entry.recipe ?? '' }));
                }
  return found;
}

interface Terms extends Readonly<Record<'host' | 'scheme' | 'method' | 'path' | 'user' | 'tenant' | 'credential' | 'recipe', string>> {
  readonly port: number;
}

function request({ user, tenant, ...terms }: Terms): Probe {
  const { host, port, scheme, method, path, credential, recipe } = terms;
  const under = recipe === '' ? '' : `, ${recipe} ${credential}`;
  const facts = { permit: '', query: [], headers: [], operations: [], operations_parsed: true };
  return {
    note: `egress: ${method} ${scheme}://${host}:${port}${path} for ${tenant}/${user}${under}`,
    input: { ...PROBE_IDENTITY, ...PROBE_SEAT, ...facts, ...terms, kind: 'egress', scope: { ...PROBE_IDENTITY.scope, user, tenant } },
  };
}

/** The entry with those of its terms in front that no earlier one of the same key has: one combination then shows what is new. */
function newFirst(entry: ListedEntry, known: ReadonlyMap<string, readonly ListedEntry[]>): ListedEntry {
  const earlier = known.get(keyOf(entry)) ?? [];
  const sorted = <Term>(terms: readonly Term[], read: (one: ListedEntry) => readonly Term[] | undefined): readonly Term[] => {
    const old = new Set(earlier.flatMap((one) => read(one) ?? []));
    return [...terms.filter((term) => !old.has(term)), ...terms.filter((term) => old.has(term))];
  };
  return {
    ...entry,
    ports: sorted(entry.ports, (one) => one.ports),
    schemes: sorted(entry.schemes, (one) => one.schemes),
    methods: sorted(entry.methods, (one) => one.methods),
    paths: sorted(entry.paths, (one) => one.paths),
    users: entry.users && sorted(entry.users, (one) => one.users),
    tenants: entry.tenants && sorted(entry.tenants, (one) => one.tenants),
  };
}

const hostsOf = ({ place, key }: ListedEntry): readonly string[] => (place === 'hosts' ? [hostOf(key)] : networkEnds(key));

const hostOf = (pattern: string): string => (pattern.startsWith('*.') ? `outwork-probe${pattern.slice(1)}` : pattern);

/** A path that a pattern names, and no narrower one that differs in a wildcard. */
const pathOf = (pattern: string): string =>
  pattern.replace(/\/\*\*$/, '/outwork-probe/outwork-probe').replaceAll(/\/\*(?=\/|$)/g, '/outwork-probe');

const keyOf = ({ place, key }: ListedEntry): string => `${place} ${key}`;

function grouped(entries: readonly ListedEntry[]): ReadonlyMap<string, readonly ListedEntry[]> {
  const groups = new Map<string, ListedEntry[]>();
  for (const entry of entries) {
    const group = groups.get(keyOf(entry));
    if (group === undefined) groups.set(keyOf(entry), [entry]);
    else group.push(entry);
  }
  return groups;
}

function changed(a: readonly string[], b: readonly string[]): readonly string[] {
  const [before, after] = [new Set(a), new Set(b)];
  return [...a.filter((item) => !after.has(item)), ...b.filter((item) => !before.has(item))];
}
