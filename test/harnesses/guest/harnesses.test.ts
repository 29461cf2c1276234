import { expect, it } from 'vitest';
import { HARNESSES as NAMES } from '../../../core/run/types.ts';
import { HARNESSES } from '../../../harnesses/guest/harnesses.ts';

it('the guest has each harness that configuration, command line and API offer, and no other', () => {
  expect(Object.keys(HARNESSES).sort()).toEqual([...NAMES].sort());
});
