/** A question that no table has to list: it follows from what the data names. */
export interface Probe {
  readonly note: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What is asked about a change, and what of it is left. */
export interface Probes {
  readonly probes: readonly Probe[];
  /** Data of which not every question is asked, in a few words each: nobody can say that it allows no more. */
  readonly unasked: readonly string[];
}

/** What a probe of any kind says of who asks. */
export const PROBE_IDENTITY = {
  version: 1,
  scope: { tenant: 'probe', user: 'probe', thread: 'probe', run: 'probe' },
  actor: { user: 'probe', roles: ['user'] },
  origin: 'interactive',
  time: '0',
} as const;

/** And of where. */
export const PROBE_SEAT = { placement: 'host-loop-shell', engine: 'bubblewrap', wall: 'namespaces' } as const;

/** The value at a place of data of any form; undefined when there is none. */
export function valueAt(settings: unknown, ...path: readonly string[]): unknown {
  return path.reduce((value: unknown, key) => (value as Record<string, unknown> | null | undefined)?.[key], settings);
}

/** The texts of a list at a place of data of any form. */
export const textsAt = (settings: unknown, ...path: readonly string[]): readonly string[] => textsIn(valueAt(settings, ...path)) ?? [];

/** The texts of a list; undefined for what is no list. */
export const textsIn = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : undefined;
