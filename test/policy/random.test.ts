import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { loadBundle } from '../../adapters/policy/bundle.ts';
import { readVerdict } from '../../adapters/policy/verdict.ts';
import { CAPABILITIES } from '../../core/capability/types.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { CASES } from './support/cases.ts';
import { serve } from './support/engine.ts';
import { copyOfShipped } from './support/policy-dir.ts';
import { LISTED, referenceAllows } from './support/reference.ts';

const DENIED = ['curl', 'nc', 'ssh'];

const word = fc.oneof(
  fc.constantFrom(
    'curl',
    'nc',
    'ssh',
    'curlew',
    'libnc',
    '/usr/bin/curl',
    './nc',
    'git',
    'push',
    '-c',
    'env',
    'sh',
    'xargs',
    '',
    '…',
    'a…',
    '--',
    'A=1',
  ),
  fc.constantFrom('cd /tmp && curl -s x|sort', 'echo $(nc x)', '`ssh a`', "'curl' x", 'echo curly nc2', 'a;curl', 'true\ncurl', '\\curl'),
  fc.string({ maxLength: 12 }).filter((text) => !text.includes('\0')),
);
const argv = fc.array(word, { minLength: 1, maxLength: 6 });
const origin = fc.constantFrom('interactive', 'trigger', 'operator');
const name = fc.constantFrom('ada', 'bob');
const roles = fc.uniqueArray(fc.constantFrom('user', 'approver', 'operator', 'policy'), { maxLength: 4 });

const call = fc.record({
  kind: fc.constant('call'),
  capability: fc.oneof(fc.constantFrom<string>(...CAPABILITIES), fc.constantFrom('sandbox.manage', 'shell', '', 'toString')),
  caller: fc.constantFrom('executor', 'product', 'operator', 'guest', ''),
  effect_class: fc.constantFrom('pure', 'idempotent', 'once'),
  origin,
  sandbox_origins: fc.uniqueArray(origin),
  args: fc
    .tuple(argv, fc.boolean(), fc.boolean())
    .map(([items, cut, background]) => ({ argv: items, argv_length: items.length + (cut ? 1 : 0), env: [], background })),
});
const placement = fc.record({
  kind: fc.constant('placement'),
  placement: fc.constantFrom<string>(...PLACEMENTS, 'moon'),
  engine: fc.constantFrom('bubblewrap', 'docker'),
  wall: fc.constantFrom('namespaces', 'gvisor'),
  harness: fc.constantFrom('native', 'scripted', 'acme', 'native ', ''),
  profile: fc.constantFrom('development', 'production'),
});
const approval = fc.record({
  kind: fc.constant('approval'),
  answer: fc.constantFrom('approve', 'deny', 'maybe'),
  actor: fc.record({ user: name }),
  approver: fc.record({ user: name, roles }),
});
const scope = fc.record({ tenant: fc.constant('acme'), user: name });
const egress = fc.record({
  kind: fc.constant('egress'),
  scope,
  host: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('example.com', 'www.example.net', 'a.b.example.net') },
    fc.constantFrom(
      'example.net',
      'evil-example.com',
      'WWW.example.net',
      'www.example.net.',
      'admin.example.net',
      '10.0.0.1',
      '2130706433',
    ),
    fc.string({ maxLength: 8 }),
  ),
  port: fc.constantFrom<number | string>(443, 443, 443, 22, '443'),
  scheme: fc.constantFrom('https', 'https', 'http'),
  method: fc.constantFrom('GET', 'POST', 'CONNECT', 'get'),
  path: fc.constantFrom('/a/x', '/b', '', '/a/../b', '/a/%2e'),
  headers: fc.array(fc.record({ name: fc.constantFrom('host', 'Host', 'accept') }), { maxLength: 2 }),
  operations_parsed: fc.boolean(),
  recipe: fc.constantFrom('', 'forge', 'other'),
  credential: fc.constantFrom('none', 'none', 'present', 'missing', 'perhaps'),
});
const trigger = fc.record({
  kind: fc.constant('trigger'),
  scope,
  actor: fc.record({ user: name }),
  origin,
  action: fc.constantFrom('create', 'delete', 'pause'),
  caller: fc.constantFrom('executor', 'product', 'operator', 'guest'),
  source: fc.constantFrom('schedule', 'webhook'),
});
const junk = fc.oneof(fc.jsonValue(), fc.record({ kind: fc.constantFrom('egress', 'trigger', 'call', 'teleport') }));

async function deniedData(): Promise<string> {
  const dir = await copyOfShipped();
  const path = join(dir, 'data', 'call.yaml');
  await writeFile(path, (await readFile(path, 'utf8')).replace('denied_programs: []', `denied_programs: [${DENIED.join(', ')}]`));
  await writeFile(join(dir, 'data', 'egress.yaml'), stringify(LISTED));
  return dir;
}

describe('never an allow that the reference would not give', () => {
  test('random questions', async () => {
    const serving = await serve(await loadBundle(await deniedData()));
    const allows = new Map<string, number>();
    fc.assert(
      fc.property(fc.oneof({ weight: 6, arbitrary: call }, placement, approval, { weight: 3, arbitrary: egress }, trigger), (input) => {
        const allowed = serving.ask(JSON.stringify(input)).effect === 'allow';
        if (allowed) allows.set(input.kind, (allows.get(input.kind) ?? 0) + 1);
        expect(allowed).toBe(referenceAllows(input, DENIED));
      }),
      { numRuns: 4000 },
    );
    // Control: of each kind something is allowed.
    expect(allows.get('call')).toBeGreaterThan(300);
    for (const kind of ['placement', 'approval', 'egress', 'trigger']) expect(allows.get(kind)).toBeGreaterThan(5);
  });

  test('random JSON that is no question', async () => {
    const serving = await serve(await loadBundle(await deniedData()));
    fc.assert(
      fc.property(junk, (input) => {
        expect(serving.ask(JSON.stringify(input)).effect).toBe('deny');
      }),
      { numRuns: 500 },
    );
  });

  const allow = new Ajv({ strict: true }).compile({
    type: 'array',
    minItems: 1,
    maxItems: 1,
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['result'],
      properties: {
        result: {
          type: 'object',
          additionalProperties: false,
          required: ['effect', 'reasons', 'obligations'],
          properties: {
            effect: { const: 'allow' },
            obligations: { type: 'array', maxItems: 100, items: { type: 'object', required: ['kind'], properties: { kind: {} } } },
            reasons: {
              type: 'array',
              minItems: 1,
              maxItems: 100,
              items: {
                type: 'object',
                additionalProperties: false,
                required: ['code', 'message'],
                properties: { code: { type: 'string', pattern: '^[a-z][a-z0-9_]{0,63}$' }, message: { type: 'string', minLength: 1 } },
              },
            },
          },
        },
      },
    },
  });

  const wellFormedAllow = (text: string): boolean => {
    try {
      return allow(JSON.parse(text));
    } catch {
      return false;
    }
  };

  const answers = CASES.map(({ effect, codes, obligations }) =>
    JSON.stringify([{ result: { effect, reasons: codes.map((code) => ({ code, message: 'Because.' })), obligations } }]),
  );
  const edits = fc.array(
    fc.record({
      at: fc.nat(400),
      cut: fc.nat(12),
      put: fc.oneof(
        fc.constantFrom('allow', '"', '{', '}', '[', ']', ',', 'null', 'true', '1', 'deny', 'ask', '"effect":"allow",', '\\', '"kind":"x"'),
        fc.string({ maxLength: 3 }),
      ),
    }),
    { minLength: 1, maxLength: 4 },
  );

  test('random changes of an answer on its way', () => {
    fc.assert(
      fc.property(fc.constantFrom(...answers), edits, (answer, changes) => {
        const text = changes.reduce((sofar, { at, cut, put }) => {
          const from = at % (sofar.length + 1);
          return sofar.slice(0, from) + put + sofar.slice(from + cut);
        }, answer);
        if (readVerdict(text).effect === 'allow') expect(wellFormedAllow(text)).toBe(true);
      }),
      { numRuns: 5000 },
    );
    // Control: an answer that nobody touched is taken.
    expect(answers.filter((answer) => readVerdict(answer).effect === 'allow').length).toBeGreaterThan(10);
  });
});
