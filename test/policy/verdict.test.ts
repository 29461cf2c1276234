import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readVerdict } from '../../adapters/policy/verdict.ts';

const reasons = [{ code: 'fine', message: 'It is fine.' }];
const good = { effect: 'allow', reasons, obligations: [] };
const results = (document: unknown): string => JSON.stringify([{ result: document }]);

describe('BL-125 only one well-formed document allows', () => {
  test('the well-formed document does (control)', () => {
    expect(readVerdict(results(good))).toEqual(good);
  });

  test.each([
    ['[]', 'policy_undefined'],
    ['', 'policy_malformed'],
    ['[', 'policy_malformed'],
    ['null', 'policy_malformed'],
    ['[{}]', 'policy_malformed'],
    ['[{"result":null}]', 'policy_malformed'],
    ['"true"', 'policy_malformed'],
    ['1', 'policy_malformed'],
    ['{}', 'policy_malformed'],
    ['{"allow":"yes"}', 'policy_malformed'],
    [JSON.stringify(good), 'policy_malformed'],
    [JSON.stringify([good]), 'policy_malformed'],
    [JSON.stringify([{ result: good }, { result: good }]), 'policy_malformed'],
    [JSON.stringify([{ result: good, more: 1 }]), 'policy_malformed'],
  ])('result set %s', (text, code) => {
    expect(readVerdict(text)).toMatchObject({ effect: 'deny', reasons: [{ code }], obligations: [] });
  });

  test.each<[string, unknown]>([
    ['true', true],
    ['text', 'allow'],
    ['list', [good]],
    ['{"allow":"yes"}', { allow: 'yes' }],
    ['no effect', { reasons, obligations: [] }],
    ['no reasons', { effect: 'allow', obligations: [] }],
    ['no obligations', { effect: 'allow', reasons }],
    ['one key more', { ...good, allow: true }],
    ['effect true', { ...good, effect: true }],
    ['effect ALLOW', { ...good, effect: 'ALLOW' }],
    ['effect as a list', { ...good, effect: ['allow'] }],
    ['reasons empty', { ...good, reasons: [] }],
    ['reasons as text', { ...good, reasons: 'fine' }],
    ['reason as text', { ...good, reasons: ['fine'] }],
    ['reason without message', { ...good, reasons: [{ code: 'fine' }] }],
    ['reason with an empty message', { ...good, reasons: [{ code: 'fine', message: '' }] }],
    ['reason with a code that is no name', { ...good, reasons: [{ code: 'It is fine', message: 'x' }] }],
    ['reason with more', { ...good, reasons: [{ code: 'fine', message: 'x', more: 1 }] }],
    ['too many reasons', { ...good, reasons: Array(101).fill(reasons[0]) }],
    ['obligations as an object', { ...good, obligations: {} }],
    ['malformed obligation', { ...good, obligations: [{ kind: 'output_limit' }] }],
    ['too many obligations', { ...good, obligations: Array(101).fill({ kind: 'audit' }) }],
  ])('document: %s', (_, document) => {
    expect(readVerdict(results(document))).toMatchObject({ effect: 'deny', reasons: [{ code: 'policy_malformed' }], obligations: [] });
  });

  test('an obligation that the kernel does not know', () => {
    const verdict = readVerdict(results({ ...good, obligations: [{ kind: 'audit' }, { kind: 'quarantine' }] }));
    expect(verdict).toMatchObject({ effect: 'deny', reasons: [{ code: 'policy_unknown_obligation' }] });
  });

  test('whatever the text, the answer is a decision', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.jsonValue().map(results)), (text) => {
        expect(readVerdict(text).effect).toBe('deny');
      }),
    );
  });
});

describe('BL-131 nothing depends on the order in which an engine lists things', () => {
  const many = {
    effect: 'allow',
    reasons: [
      { code: 'b', message: '1' },
      { code: 'a', message: '2' },
      { code: 'a', message: '1' },
    ],
    obligations: [
      { kind: 'reserve', wall_ms: 9 },
      { kind: 'output_limit', bytes: 20 },
      { kind: 'effect_class', class: 'pure' },
      { kind: 'effect_class', class: 'idempotent' },
      { kind: 'output_limit', bytes: 10 },
      { kind: 'reserve', wall_ms: 7 },
      { kind: 'leaks', exact: 'redact', shapes: 'block' },
      { kind: 'leaks', exact: 'block', shapes: 'redact' },
      { kind: 'redact' },
      { kind: 'redact' },
    ],
  };

  test('the strictest obligation of a kind counts, in one order', () => {
    expect(readVerdict(results(many))).toEqual({
      effect: 'allow',
      reasons: [many.reasons[2], many.reasons[1], many.reasons[0]],
      obligations: [
        { kind: 'effect_class', class: 'idempotent' },
        { kind: 'leaks', exact: 'block', shapes: 'block' },
        { kind: 'output_limit', bytes: 10 },
        { kind: 'redact' },
        { kind: 'reserve', wallMs: 7 },
      ],
    });
  });

  test('any order gives the same answer', () => {
    const shuffled = <T>(list: T[]) => fc.shuffledSubarray(list, { minLength: list.length });
    fc.assert(
      fc.property(shuffled(many.reasons), shuffled(many.obligations), (someReasons, obligations) => {
        expect(readVerdict(results({ effect: 'allow', reasons: someReasons, obligations }))).toEqual(readVerdict(results(many)));
      }),
    );
  });
});
