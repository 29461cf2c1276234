import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadBundle } from '../../adapters/policy/bundle.ts';
import { overlay } from '../../adapters/policy/cases.ts';
import { serve } from './support/engine.ts';
import { copyOfShipped, SHIPPED } from './support/policy-dir.ts';

const guide = await readFile(join(SHIPPED, 'README.md'), 'utf8');
const block = (file: string): string =>
  new RegExp(`file=${file}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(guide)?.[1] ?? expect.fail(`no block ${file}`);

/** Rows of the guide's table: members of a question as they are written there, and the code. */
const rows = [...guide.matchAll(/^\| (.*"(?:path|port|user|host|operations_parsed|credential)".*?) +\| `(\w+)` +\|$/gm)].flatMap(
  ([, cell = '', code = '']) => {
    let name = '';
    return [...cell.matchAll(/`(?:"(\w+)": )?("[^`]*"|\d+|false)`/g)].map(([, member, value = '']) => {
      name = member ?? name;
      return { code, name, value: JSON.parse(value) as unknown };
    });
  },
);

test('the list of hosts in the guide decides as its table says', async () => {
  const dir = await copyOfShipped();
  await writeFile(join(dir, 'data', 'egress.yaml'), block('data/egress.yaml'));
  const serving = await serve(await loadBundle(dir));
  const request = JSON.parse(block('request.json')) as Record<string, unknown>;
  expect(serving.ask(JSON.stringify(request)).effect).toBe('allow');
  expect(rows.length).toBe(13);
  for (const { code, name, value } of rows) {
    const change = name === 'user' ? { scope: { user: value } } : { [name]: value };
    const verdict = serving.ask(JSON.stringify(overlay(request, change)));
    expect([name, value, verdict.effect, verdict.reasons.map((reason) => reason.code)]).toEqual([
      name,
      value,
      'deny',
      expect.arrayContaining([code]),
    ]);
  }
});
