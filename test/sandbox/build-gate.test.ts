import { describe, expect, it } from 'vitest';
import { buildGate, type FoundPart } from '../../adapters/sandbox/build-gate.ts';

const SOURCE = 'f'.repeat(64);
const STATES: Readonly<Record<string, FoundPart | undefined>> = {
  equal: { label: SOURCE, intact: true },
  missing: undefined,
  unlabelled: { label: undefined, intact: true },
  stale: { label: 'e'.repeat(64), intact: true },
  damaged: { label: SOURCE, intact: false },
};
/** Whatever an engine's image consists of: images of a registry, files of a directory. */
const ENGINES: Readonly<Record<string, readonly string[]>> = {
  docker: ['main', 'worker'],
  bubblewrap: ['opt/guest.cjs', 'opt/init.sh', 'seccomp.bpf', 'stage.fstab', 'etc'],
};

const gateOf = (states: Readonly<Record<string, keyof typeof STATES>>) => {
  const found = Object.entries(states).flatMap(([part, state]): [string, FoundPart][] => {
    const as = STATES[state];
    return as === undefined ? [] : [[part, as]];
  });
  return buildGate(SOURCE, Object.keys(states), new Map(found));
};

describe.each(Object.entries(ENGINES))('finding 4, 5: the gate of %s', (_engine, parts) => {
  const all = (state: string) => Object.fromEntries(parts.map((part) => [part, state]));

  it('skips when every part is labelled with these sources', () => {
    expect(gateOf(all('equal'))).toEqual({ skip: true, faults: [] });
  });

  it.each(parts.flatMap((part) => Object.keys(STATES).map((state) => ({ part, state }))))(
    '$part $state, all others equal: skips only for equal',
    ({ part, state }) => {
      const { skip, faults } = gateOf({ ...all('equal'), [part]: state });
      expect(skip).toBe(state === 'equal');
      expect(faults).toEqual(state === 'equal' ? [] : [{ part, why: state }]);
    },
  );

  it.each(Object.keys(STATES).filter((state) => state !== 'equal'))('one equal part does not stand for others that are %s', (state) => {
    for (const part of parts) expect(gateOf({ ...all(state), [part]: 'equal' }).skip).toBe(false);
  });
});

it('finding 4, 5: no part to look at is no reason to skip', () => {
  expect(buildGate(SOURCE, [], new Map()).skip).toBe(false);
});

it('finding 4, 5: what was found besides does not make up for a part', () => {
  expect(
    buildGate(
      SOURCE,
      ['main', 'worker'],
      new Map([
        ['main', { label: SOURCE, intact: true }],
        ['other', { label: SOURCE, intact: true }],
      ]),
    ).skip,
  ).toBe(false);
});
