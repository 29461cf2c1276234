import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../adapters/policy/build.ts';
import { type Judged, unjudgedChanges } from '../../adapters/policy/site-change.ts';
import { startEngine } from './support/engine.ts';
import { shellInput } from './support/inputs.ts';
import { copyOfShipped } from './support/policy-dir.ts';
import { REASON, siteRule, siteWith } from './support/site.ts';

interface Own {
  readonly rules?: Record<string, string>;
  readonly schemas?: Record<string, object>;
  readonly data?: object;
}

const judged = ({ rules = {}, schemas = {}, data }: Own): Judged => ({
  site: { rules, schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, JSON.stringify(schema)])) },
  dataJson: JSON.stringify({ settings: {}, ...(data === undefined ? {} : { site_settings: data }) }),
  digests: { rules: JSON.stringify(rules), data: '', version: 1 },
});
const faults = (now: Own, next: Own) => unjudgedChanges(judged(now), judged(next));

const A = siteRule('deny', REASON, 'input.args.argv[0] == "a"');
const B = siteRule('ask', REASON, 'input.args.argv[0] == "b"').replaceAll('of_the_site', 'of_b');
const withHelper = (name: string) => `${B}\n${name}(x) if x == "b"\n`;

describe('rules of a site that are new only narrow', () => {
  test.each<[string, Own, Own]>([
    ['the first one', {}, { rules: { 'site/call/a.rego': A } }],
    ['one more', { rules: { 'site/call/a.rego': A } }, { rules: { 'site/call/a.rego': A, 'site/call/b.rego': B } }],
    ['a helper of its own', { rules: { 'a.rego': A } }, { rules: { 'a.rego': A, 'b.rego': withHelper('_is_b') } }],
    [
      'beside a rule whose message has words of rules',
      { rules: { 'a.rego': A.replace('The site says so.', 'deny: ask data.site') } },
      { rules: { 'a.rego': A.replace('The site says so.', 'deny: ask data.site'), 'b.rego': B } },
    ],
    [
      'beside a rule that reads named data and the libraries',
      { rules: { 'a.rego': siteRule('deny', REASON, 'data.outwork.lib.paths.below(data.site_settings.w.x, "a")') } },
      { rules: { 'a.rego': siteRule('deny', REASON, 'data.outwork.lib.paths.below(data.site_settings.w.x, "a")'), 'b.rego': B } },
    ],
  ])('%s', (_, now, next) => {
    expect(faults(now, next)).toEqual([]);
  });

  test.each<[string, string]>([
    ['asks whether another denies', 'count(deny) == 0'],
    ['asks whether another asks', 'count(ask) == 0'],
    ['reads packages of the site', 'not data.site.call._exempt'],
    ['reads packages by a name that is computed', 'some name; data.site[name]'],
    ['reads all data of the site', 'some name; data.site_settings[name]'],
    ['reads what the shipped rules say of the site', 'count(data.outwork.site.ask) == 0'],
    ['has an expression in a text', '$"{count(data.site.call.ask)}" == "0"'],
    ['reads annotations of others', 'count(rego.metadata.chain()) == 1'],
  ])('but not beside one that %s', (_, condition) => {
    const rules = { 'a.rego': siteRule('deny', REASON, condition) };
    expect(faults({ rules }, { rules: { ...rules, 'b.rego': B } })).toEqual(['a.rego looks at other rules, and there are new ones']);
  });

  test('but not when they define what an accepted one names', () => {
    const rules = { 'a.rego': siteRule('deny', REASON, 'not _exempt(input.args.argv[0])') };
    expect(faults({ rules }, { rules: { ...rules, 'b.rego': withHelper('_exempt') } })).toEqual([
      'b.rego defines _exempt, which an accepted rule names',
    ]);
  });

  test('a rule that is changed, moved or gone cannot be judged; what is written about the same rules can', () => {
    const rules = { 'a.rego': A };
    expect(faults({ rules }, { rules: { 'a.rego': A.replace('"a"', '"b"') } })).toEqual(['a.rego is changed']);
    expect(faults({ rules }, { rules: { 'c.rego': A } })).toEqual(['a.rego is gone']);
    expect(faults({ rules }, {})).toEqual(['a.rego is gone']);
    const same = { ...judged({ rules: { 'a.rego': `# why\n${A}` } }), digests: judged({ rules }).digests };
    expect(unjudgedChanges(judged({ rules }), same)).toEqual([]);
  });
});

const LISTS = {
  properties: {
    denied: { type: 'array', narrows: 'more' },
    exempt: { type: 'array', narrows: 'fewer' },
    most: { narrows: 'lower' },
    least: { narrows: 'higher' },
    by_team: { additionalProperties: { narrows: 'more' } },
    owners: { narrows: 'more' },
    free: { type: 'array' },
  },
};
const VALUE = { denied: ['a'], exempt: ['x', 'y'], most: 5, least: 5, by_team: { red: ['a'] }, owners: { red: 1 }, free: ['f'] };
const data = (change: object): Own => ({ schemas: { words: LISTS }, data: { words: { ...VALUE, ...change } } });

describe('data of a site changes in the direction that its accepted schema says narrows', () => {
  test.each<[string, object]>([
    ['nothing', {}],
    ['an entry more of a list of denials', { denied: ['a', 'b'] }],
    ['the same entries in another order', { exempt: ['y', 'x'] }],
    ['an exemption less', { exempt: ['x'] }],
    ['a lower most', { most: 4 }],
    ['a higher least', { least: 6 }],
    ['an entry more below a name', { by_team: { red: ['a', 'b'] } }],
    ['a name more', { owners: { red: 1, blue: 2 } }],
  ])('%s', (_, change) => {
    expect(faults(data({}), data(change))).toEqual([]);
  });

  test.each<[string, object, string]>([
    ['a denial less', { denied: [] }, 'denied is changed, and not by entries more'],
    ['a denial for another', { denied: ['b'] }, 'denied is changed, and not by entries more'],
    ['an exemption more', { exempt: ['x', 'y', 'z'] }, 'exempt is changed, and not by entries fewer'],
    ['a higher most', { most: 6 }, 'most is changed, and not by a lower number'],
    ['a lower least', { least: 4 }, 'least is changed, and not by a higher number'],
    ['another type', { most: '4' }, 'most is changed, and not by a lower number'],
    ['an entry less below a name', { by_team: { red: [] } }, 'by_team/red is changed, and not by entries more'],
    ['a name less', { by_team: {} }, 'by_team/red is changed, and not by entries more'],
    ['another value of a name', { owners: { red: 2 } }, 'owners is changed, and not by entries more'],
    ['a list of which nothing is said', { free: ['f', 'g'] }, 'free is changed'],
  ])('but not %s', (_, change, told) => {
    expect(faults(data({}), data(change))).toEqual([`data/words.yaml/${told}`]);
  });

  test('what the new schema says counts for nothing yet', () => {
    const schemas = { words: { ...LISTS, properties: { ...LISTS.properties, free: { narrows: 'more' } } } };
    expect(faults(data({}), { ...data({ free: ['f', 'g'] }), schemas })).toEqual(['schemas/settings/words.json is changed']);
  });

  test('a file that is gone cannot be judged; a new one can unless an accepted rule may read it', () => {
    expect(faults(data({}), {})).toEqual(['data/words.yaml is changed']);
    expect(faults({ rules: { 'a.rego': A } }, { ...data({}), rules: { 'a.rego': A } })).toEqual([]);
    const rules = { 'a.rego': siteRule('deny', REASON, 'not input.args.argv[0] in data.site_settings.words.exempt') };
    expect(faults({ rules }, { ...data({}), rules })).toEqual(['data/words.yaml is new, and an accepted rule may read it']);
  });
});

const SCHEMA = JSON.stringify({
  type: 'object',
  required: ['words'],
  additionalProperties: false,
  properties: { words: { type: 'array', items: { type: 'string' }, narrows: 'more' } },
});

async function siteOfWords(schema = SCHEMA) {
  const dir = await copyOfShipped();
  const siteDir = await siteWith(dir, {
    'site/call/rule.rego': siteRule('deny', REASON, 'input.args.argv[0] in data.site_settings.words.words'),
    'data/words.yaml': 'words: [git, curl]\n',
    'schemas/settings/words.json': schema,
  });
  const started = await startEngine(dir, { siteDir });
  const write = (text: string) => writeFile(join(siteDir, 'data', 'words.yaml'), text);
  const effect = (program: string) => started.engine.decide(shellInput([program])).effect;
  return { dir, siteDir, ...started, write, effect };
}

describe('Y4 through the gates of a running engine', () => {
  test('data that narrows is live at once; data that nobody asked about yet and that widens waits for a person', async () => {
    const { engine, events, write, effect } = await siteOfWords();
    await write('words: [git, curl, wget]\n');
    await engine.reload();
    expect([effect('git'), effect('wget'), effect('make')]).toEqual(['deny', 'deny', 'allow']);
    await write('words: [git, wget]\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain('data/words.yaml/words is changed');
    await expect(engine.apply({})).rejects.toMatchObject({ code: 'policy_widening' });
    expect(effect('curl')).toBe('deny');
    const change = await engine.apply({ widenBy: 'default/paula' });
    expect(change.unjudged).toEqual(['data/words.yaml/words is changed, and not by entries more']);
    expect(effect('curl')).toBe('allow');
    expect(events.at(-1)).toMatchObject({
      type: 'policy.widened',
      data: { by: 'default/paula', flips: 0, unjudged: change.unjudged },
    });
  });

  test('data whose schema says nothing waits for a person, whichever way it goes', async () => {
    const { engine, write, effect } = await siteOfWords(SCHEMA.replace(',"narrows":"more"', ''));
    await write('words: [git, curl, wget]\n');
    await engine.reload();
    expect(engine.status().reloadFault).toContain('which no question can judge');
    expect(effect('wget')).toBe('allow');
  });

  test('a schema that is to say it is itself held to a person', async () => {
    const { engine, siteDir, write } = await siteOfWords(SCHEMA.replace(',"narrows":"more"', ''));
    await writeFile(join(siteDir, 'schemas', 'settings', 'words.json'), SCHEMA);
    await engine.reload();
    expect(engine.status().reloadFault).toContain('schemas/settings/words.json is changed');
    await engine.apply({ widenBy: 'paula' });
    await write('words: [git, curl, wget]\n');
    await engine.reload();
    expect(engine.status().reloadFault).toBeUndefined();
  });

  test('a word that is no direction is refused', async () => {
    const dir = await copyOfShipped();
    const files = { 'data/words.yaml': 'words: []\n', 'schemas/settings/words.json': SCHEMA.replace('"more"', '"bigger"') };
    const siteDir = await siteWith(dir, { 'site/call/rule.rego': siteRule('deny', REASON, 'false'), ...files });
    await expect(startEngine(dir, { siteDir })).rejects.toMatchObject({ code: 'policy_malformed' });
  });

  test('a new rule file is live at once; one that is changed or gone waits', async () => {
    const { dir, siteDir, engine, effect } = await siteOfWords();
    const path = join(siteDir, 'site', 'call', 'more.rego');
    const rule = siteRule('deny', REASON, 'input.args.argv[0] == "nc"').replaceAll('of_the_site', 'no_nc');
    await writeFile(path, rule);
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect([engine.status().reloadFault, effect('nc')]).toEqual([undefined, 'deny']);
    await writeFile(path, rule.replace('"nc"', '"ncat"'));
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect(engine.status().reloadFault).toContain('site/call/more.rego is changed');
    await rm(path);
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect(engine.status().reloadFault).toContain('site/call/more.rego is gone');
    expect(effect('nc')).toBe('deny');
  });

  test('a comment in a rule is no change of it', async () => {
    const { dir, siteDir, engine } = await siteOfWords();
    const path = join(siteDir, 'site', 'call', 'rule.rego');
    await writeFile(path, `${await readFile(path, 'utf8')}\n# more words\n`);
    await buildPolicy(dir, siteDir);
    await engine.reload();
    expect(engine.status().reloadFault).toBeUndefined();
  });
});
