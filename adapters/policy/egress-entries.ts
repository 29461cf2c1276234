import { isMapping } from '../../core/json.ts';
import { textsIn, valueAt } from './probe.ts';

/** One entry of data/egress.yaml with the pattern or network that it stands under. */
export interface ListedEntry {
  readonly place: 'hosts' | 'addresses';
  readonly key: string;
  readonly ports: readonly number[];
  readonly schemes: readonly string[];
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  /** undefined: everybody; []: nobody. */
  readonly users: readonly string[] | undefined;
  readonly tenants: readonly string[] | undefined;
  readonly recipe: string | undefined;
}

/** Every entry of `data.settings.egress`, of whatever form that is. */
export function listedEntries(settings: unknown): readonly ListedEntry[] {
  return (['hosts', 'addresses'] as const).flatMap((place) =>
    Object.entries(mapping(valueAt(settings, 'egress', place))).flatMap(([key, entries]) =>
      (Array.isArray(entries) ? entries : []).map((entry) => toEntry(place, key, mapping(entry))),
    ),
  );
}

/** Patterns that `data.settings.egress` denies. */
export const deniedPatterns = (settings: unknown): readonly string[] => Object.keys(mapping(valueAt(settings, 'egress', 'denied')));

/** True when everything that the second entry admits is plainly admitted by the first: the same terms, or fewer. */
export function covers(wide: ListedEntry, narrow: ListedEntry): boolean {
  return (
    wide.place === narrow.place &&
    wide.key === narrow.key &&
    wide.recipe === narrow.recipe &&
    holds(wide.ports, narrow.ports) &&
    holds(wide.schemes, narrow.schemes) &&
    holds(wide.methods, narrow.methods) &&
    holds(wide.paths, narrow.paths) &&
    holds(wide.users, narrow.users) &&
    holds(wide.tenants, narrow.tenants)
  );
}

function holds<Term>(wide: readonly Term[] | undefined, narrow: readonly Term[] | undefined): boolean {
  return wide === undefined || narrow?.every((term) => wide.includes(term)) === true;
}

function toEntry(place: ListedEntry['place'], key: string, entry: Readonly<Record<string, unknown>>): ListedEntry {
  const { ports, recipe } = entry;
  return {
    place,
    key,
    ports: Array.isArray(ports) ? ports.filter((port): port is number => typeof port === 'number') : [],
    schemes: textsIn(entry.schemes) ?? [],
    methods: textsIn(entry.methods) ?? [],
    paths: textsIn(entry.paths) ?? [],
    users: textsIn(entry.users),
    tenants: textsIn(entry.tenants),
    recipe: typeof recipe === 'string' ? recipe : undefined,
  };
}

const mapping = (value: unknown): Readonly<Record<string, unknown>> => (isMapping(value) ? value : {});
