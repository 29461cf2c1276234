import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadBundle } from '../../adapters/policy/bundle.ts';
import { egressProbes } from '../../adapters/policy/egress-probes.ts';
import { egressInput, triggerInput } from './support/egress.ts';
import { serve, startEngine } from './support/engine.ts';
import { copyOfShipped, SHIPPED } from './support/policy-dir.ts';

const START = `
hosts:
  example.com:
    - { ports: [443], schemes: [https], methods: [GET, HEAD], paths: [/public/**, /repos/*/issues], users: [ada, bob] }
    - { ports: [8443], schemes: [https], methods: [POST], paths: [/hook] }
  "*.example.net":
    - { ports: [443], schemes: [https], methods: [GET], paths: [/**] }
  api.example.org:
    - { ports: [443], schemes: [https], methods: [POST], paths: [/graphql], recipe: forge }
  deep.secret.example.com:
    - { ports: [443], schemes: [https], methods: [GET], paths: [/**] }
addresses:
  198.41.0.0/24:
    - { ports: [443], schemes: [https], methods: [GET], paths: [/**] }
denied:
  admin.example.net: for people only
  "*.secret.example.com": for nobody
`;

async function withEgress(text: string) {
  const dir = await copyOfShipped();
  await writeFile(join(dir, 'data', 'egress.yaml'), text);
  const { engine } = await startEngine(dir);
  const edit = async (from: string, to: string, file = 'egress') => {
    const path = join(dir, 'data', `${file}.yaml`);
    const before = await readFile(path, 'utf8');
    expect(before).toContain(from);
    await writeFile(path, before.replace(from, to));
  };
  return { engine, edit };
}

describe('Y4 a longer list waits for a person', () => {
  test.each([
    ['a host', 'addresses:', '  new.example.org: [{ ports: [443], schemes: [https], methods: [GET], paths: [/x] }]\naddresses:'],
    ['a name that becomes a pattern', 'api.example.org:', '"*.example.org":'],
    ['a port', 'ports: [8443]', 'ports: [8443, 22]'],
    ['a scheme', 'schemes: [https], methods: [POST], paths: [/hook]', 'schemes: [https, http], methods: [POST], paths: [/hook]'],
    ['a method', 'methods: [GET, HEAD]', 'methods: [GET, HEAD, DELETE]'],
    ['a tunnel', 'methods: [GET], paths: [/**] }\n  api', 'methods: [GET, CONNECT], paths: [/**] }\n  api'],
    ['a path', 'paths: [/hook]', 'paths: [/hook, /hook/more]'],
    ['a path for any segment', '/repos/*/issues', '/repos/*/*'],
    ['a path for any rest', '/repos/*/issues', '/repos/**'],
    ['everybody', ', users: [ada, bob]', ''],
    ['a user', 'users: [ada, bob]', 'users: [ada, bob, eve]'],
    ['no recipe', ', recipe: forge', ''],
    ['another recipe', 'recipe: forge', 'recipe: other'],
    ['a wider network', '198.41.0.0/24', '198.41.0.0/20'],
    ['a host that is denied no more', '  admin.example.net: for people only\n', ''],
    ['hosts below a pattern that are denied no more', '  "*.secret.example.com": for nobody\n', ''],
    [
      'two entries that became one',
      '- { ports: [8443], schemes: [https], methods: [POST], paths: [/hook] }',
      '- { ports: [8443, 443], schemes: [https], methods: [POST, GET], paths: [/hook] }',
    ],
  ])('%s', async (_, from, to) => {
    const { engine, edit } = await withEgress(START);
    await edit(from, to);
    await expect(engine.apply({})).rejects.toMatchObject({ code: 'policy_widening', message: expect.stringContaining('egress: ') });
    await engine.reload();
    expect(engine.status().reloadFault).toContain('allows more');
    expect((await engine.apply({ widenBy: 'default/paula' })).flips.some(({ looser, kind }) => looser && kind === 'egress')).toBe(true);
  });

  test.each([
    ['a host', '  deep.secret.example.com:\n    - { ports: [443], schemes: [https], methods: [GET], paths: [/**] }\n', ''],
    ['a port', 'ports: [8443]', 'ports: [8444, 8443]', 'ports: [8444, 8443]', 'ports: [8443]'],
    ['a method', 'methods: [GET, HEAD]', 'methods: [GET]'],
    ['a path', '/repos/*/issues', '/repos/mine/issues'],
    ['a user', 'users: [ada, bob]', 'users: [ada]'],
    ['a network', '198.41.0.0/24', '198.41.0.0/25'],
    ['a denial more', 'denied:\n', 'denied:\n  a.example.net: closed\n'],
    ['nobody', 'users: [ada, bob]', 'users: []'],
  ])('what narrows is live at once: %s', async (_, from, to, back = '', again = '') => {
    const { engine, edit } = await withEgress(START.replace(back === '' ? '\0' : from, to));
    const before = engine.status().snapshot;
    await (back === '' ? edit(from, to) : edit(back, again));
    await engine.reload();
    expect(engine.status().reloadFault).toBeUndefined();
    expect(engine.status().snapshot).not.toBe(before);
  });

  test('a source of triggers that asks no more, or is denied no more; and the other way', async () => {
    const { engine, edit } = await withEgress(START);
    await edit('denied: []', 'denied: [webhook]', 'trigger');
    await engine.reload();
    expect(engine.decide(triggerInput({ source: 'webhook' })).effect).toBe('deny');
    await edit('denied: [webhook]', 'denied: []', 'trigger');
    await expect(engine.apply({})).rejects.toMatchObject({ code: 'policy_widening', message: expect.stringContaining('trigger: ') });
    await edit('denied: []', 'denied: [webhook]', 'trigger');
    await edit('ask: [schedule, webhook]', 'ask: [webhook]', 'trigger');
    await expect(engine.apply({})).rejects.toMatchObject({ code: 'policy_widening' });
    await engine.apply({ widenBy: 'default/paula' });
    expect(engine.decide(triggerInput()).effect).toBe('allow');
  });
});

test('Y4 a list that is too much to ask about waits for a person as well', async () => {
  const { engine, edit } = await withEgress(START);
  const ports = Array.from({ length: 32 }, (_, at) => at + 1).join(', ');
  const paths = Array.from({ length: 20 }, (_, at) => `/p${at}`).join(', ');
  await edit('denied:', `denied:\n  closed.example.org: for now`);
  await edit(
    'addresses:',
    `  closed.example.org: [{ ports: [${ports}], schemes: [https], methods: [GET], paths: [${paths}] }]\naddresses:`,
  );
  await expect(engine.apply({})).rejects.toMatchObject({
    message: expect.stringContaining('hosts/closed.example.org, which no question can judge'),
  });
});

describe('the questions about two lists', () => {
  const list = (hosts: unknown, denied: unknown = {}) => ({ egress: { hosts, addresses: {}, denied } });
  const terms = { ports: [443], schemes: ['https'], methods: ['GET'], paths: ['/**'] };

  test('none about what is as it was, some about what is new, and what is too much to ask is told', () => {
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`h${at}.example.com`, [terms]]));
    const same = egressProbes(list(many), list(many));
    expect(same.unasked).toEqual([]);
    expect(same.probes.length).toBeLessThan(100);
    const grown = egressProbes(list(many), list({ ...many, 'new.example.com': [terms] }));
    expect(grown.probes.some(({ note }) => note.includes('new.example.com'))).toBe(true);
    expect(grown.unasked).toEqual([]);
    expect(egressProbes(list({}), list(many)).unasked).toEqual(['data/egress.yaml hosts/h2000.example.com and 999 more places']);
    const wide = {
      ...terms,
      ports: Array.from({ length: 32 }, (_, at) => at + 1),
      paths: Array.from({ length: 20 }, (_, at) => `/p${at}`),
    };
    expect(egressProbes(list({}), list({ 'a.example.com': [wide] })).unasked).toEqual(['data/egress.yaml hosts/a.example.com']);
    expect(egressProbes(list({ 'a.example.com': [wide] }), list({ 'a.example.com': [{ ...wide, ports: [1, 2] }] })).unasked).toEqual([]);
  });

  test('a list of any form is a list of nothing', () => {
    for (const form of [undefined, null, 1, 'x', [], { hosts: [] }, { hosts: { a: 1 } }, { hosts: { a: [1, null, { ports: 'x' }] } }])
      expect(egressProbes({ egress: form }, { egress: form }).unasked).toEqual([]);
  });

  const some = <Term>(...terms: Term[]) => fc.uniqueArray(fc.constantFrom(...terms), { minLength: 1, maxLength: 2 });
  const entry = fc.record(
    {
      ports: some(443, 8443),
      schemes: some('https', 'http'),
      methods: some('GET', 'POST', 'CONNECT'),
      paths: some('/**', '/a/**', '/a/*', '/a/b'),
      users: some('ada', 'bob'),
      recipe: fc.constantFrom('forge', 'other'),
    },
    { requiredKeys: ['ports', 'schemes', 'methods', 'paths'] },
  );
  const hosts = fc.dictionary(
    fc.constantFrom('a.example.com', '*.example.com', '*.b.example.com', 'example.com'),
    fc.array(entry, { minLength: 1, maxLength: 2 }),
    { maxKeys: 3 },
  );
  const question = fc.record({
    host: fc.constantFrom('a.example.com', 'x.example.com', 'x.b.example.com', 'example.com'),
    port: fc.constantFrom(443, 8443),
    scheme: fc.constantFrom('https', 'http'),
    method: fc.constantFrom('GET', 'POST', 'CONNECT'),
    path: fc.constantFrom('', '/a/b', '/a/c', '/a/b/c', '/z'),
    user: fc.constantFrom('ada', 'bob', 'eve'),
    recipe: fc.constantFrom('', 'forge', 'other'),
    credential: fc.constantFrom('none', 'present'),
  });

  test('whatever a random list newly allows, one of its questions is newly allowed too', async () => {
    const bundle = await loadBundle(SHIPPED);
    const data = JSON.parse(bundle.dataJson) as { settings: Record<string, unknown> };
    const serveList = (egress: unknown) =>
      serve({ ...bundle, dataJson: JSON.stringify({ ...data, settings: { ...data.settings, ...(egress as object) } }) });
    let widened = 0;
    for (const [a, b] of fc.sample(fc.tuple(hosts, hosts), { numRuns: 12, seed: 12 })) {
      const [now, next] = [list(a), list(b)];
      const [before, after] = await Promise.all([serveList(now), serveList(next)]);
      const allowed = (serving: typeof before, input: unknown) => serving.ask(JSON.stringify(input)).effect === 'allow';
      const told = egressProbes(now, next).probes.some(({ input }) => allowed(after, input) && !allowed(before, input));
      const seen = fc.sample(question, { numRuns: 400, seed: 12 }).some(({ user, ...terms }) => {
        const input = { kind: 'egress', scope: { tenant: 'acme', user }, headers: [], operations_parsed: true, ...terms };
        return allowed(after, input) && !allowed(before, input);
      });
      if (seen) widened += 1;
      if (seen) expect([a, b, told]).toEqual([a, b, true]);
    }
    // Control: lists grew.
    expect(widened).toBeGreaterThan(5);
  });
});

test('a request is decided under the shipped data: nothing is listed', async () => {
  const { engine } = await startEngine(await copyOfShipped());
  expect(engine.decide(egressInput())).toMatchObject({ effect: 'deny', reasons: [{ code: 'host_not_listed' }] });
  expect(engine.decide(triggerInput({ caller: 'executor' }))).toMatchObject({
    effect: 'ask',
    reasons: [{ code: 'trigger_by_executor' }, { code: 'trigger_source_asks' }],
  });
});
