import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromRegoObligation, toRegoInput } from '../../adapters/policy/marshal.ts';
import { CAPABILITIES } from '../../core/capability/types.ts';
import type { PolicyInput } from '../../core/policy/types.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { callInput, placementInput } from './support/inputs.ts';
import { SHIPPED } from './support/policy-dir.ts';

const checkOf = (kind: 'call' | 'placement') =>
  new Ajv({ strict: true, strictRequired: false }).compile(
    JSON.parse(readFileSync(join(SHIPPED, 'schemas', 'input', `${kind}.json`), 'utf8')),
  );

describe('names change at one place', () => {
  test('a call is shown in snake_case and nothing else of it', () => {
    const shown = toRegoInput({ ...callInput(), smuggled: true } as PolicyInput);
    expect(Object.keys(shown)).toEqual(expect.arrayContaining(['effect_class', 'args_digest', 'calls_used']));
    expect(shown).not.toHaveProperty('effectClass');
    expect(shown).not.toHaveProperty('smuggled');
  });

  test('a call recorded before credentials were told of is shown as one without', () => {
    const { credential, recipe, ...older } = callInput({ credential: 'present', recipe: 'github' });
    expect(toRegoInput({ ...older, credential, recipe })).toMatchObject({ credential: 'present', recipe: 'github' });
    const shown = toRegoInput(older as PolicyInput);
    expect(shown).toMatchObject({ credential: 'none', recipe: '' });
    expect(checkOf('call')(shown)).toBe(true);
  });

  test("arguments pass as they are: their keys may be a caller's", () => {
    const args = { someKey: { otherKey: 1 }, some_key: 2 };
    expect(toRegoInput(callInput({ args })).args).toEqual(args);
  });

  test('every input that the types admit fits the schema that rules are checked against', () => {
    const call = checkOf('call');
    const placement = checkOf('placement');
    const common = {
      placement: fc.constantFrom(...PLACEMENTS),
      engine: fc.constantFrom('bubblewrap' as const, 'docker' as const),
      wall: fc.string(),
    };
    const calls = fc.record({
      ...common,
      capability: fc.constantFrom(...CAPABILITIES),
      caller: fc.constantFrom('executor' as const, 'product' as const, 'operator' as const),
      effectClass: fc.constantFrom('pure' as const, 'idempotent' as const, 'once' as const),
      callsUsed: fc.nat(),
    });
    fc.assert(fc.property(calls, (change) => call(toRegoInput(callInput(change)))));
    const placements = fc.record({
      ...common,
      harness: fc.string(),
      profile: fc.constantFrom('development' as const, 'production' as const),
    });
    fc.assert(fc.property(placements, (change) => placement(toRegoInput(placementInput(change)))));
    expect(call(toRegoInput(placementInput()))).toBe(false);
    expect(placement({ ...toRegoInput(placementInput()), more: 1 })).toBe(false);
  });
});

describe('obligations of a decision', () => {
  test.each([
    [{ kind: 'redact' }, { kind: 'redact' }],
    [{ kind: 'audit' }, { kind: 'audit' }],
    [
      { kind: 'output_limit', bytes: 0 },
      { kind: 'output_limit', bytes: 0 },
    ],
    [
      { kind: 'reserve', wall_ms: 5 },
      { kind: 'reserve', wallMs: 5 },
    ],
    [
      { kind: 'effect_class', class: 'pure' },
      { kind: 'effect_class', class: 'pure' },
    ],
    [
      { kind: 'leaks', exact: 'block', shapes: 'warn' },
      { kind: 'leaks', exact: 'block', shapes: 'warn' },
    ],
    [{ kind: 'leaks', exact: 'warn', shapes: 'warn' }, 'malformed'],
    [{ kind: 'leaks', exact: 'redact' }, 'malformed'],
    [{ kind: 'leaks', exact: 'redact', shapes: 'ignore' }, 'malformed'],
    [{ kind: 'leaks', exact: 'redact', shapes: 'warn', more: 1 }, 'malformed'],
    [{ kind: 'quarantine' }, 'unknown'],
    [{ kind: 'toString' }, 'unknown'],
    [{ kind: '' }, 'unknown'],
    [{ kind: 1 }, 'malformed'],
    [{}, 'malformed'],
    [[], 'malformed'],
    [null, 'malformed'],
    ['redact', 'malformed'],
    [{ kind: 'redact', bytes: 1 }, 'malformed'],
    [{ kind: 'output_limit' }, 'malformed'],
    [{ kind: 'output_limit', bytes: '1' }, 'malformed'],
    [{ kind: 'output_limit', bytes: -1 }, 'malformed'],
    [{ kind: 'output_limit', bytes: 1.5 }, 'malformed'],
    [{ kind: 'output_limit', bytes: 1e300 }, 'malformed'],
    [{ kind: 'output_limit', bytes: 1, wall_ms: 1 }, 'malformed'],
    [{ kind: 'reserve', wallMs: 5 }, 'malformed'],
    [{ kind: 'effect_class', class: 'safe' }, 'malformed'],
    [{ kind: 'effect_class', class: ['pure'] }, 'malformed'],
  ])('%j → %j', (written, read) => {
    expect(fromRegoObligation(written)).toEqual(read);
  });
});
