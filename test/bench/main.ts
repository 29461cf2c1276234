import { parseArgs } from 'node:util';
import type { Figure } from './figure.ts';
import { BENCHES } from './list.ts';
import { figureTable } from './table.ts';

/**
 * `npm run bench [-- [--json] [NAME…]]`: measures, prints a table (or one JSON document), exits with 1 when a target is missed and with 2
 * for a name that is none. One bench runs after the other: they would measure each other.
 */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ options: { json: { type: 'boolean', default: false } }, allowPositionals: true });
  const names = positionals.length === 0 ? Object.keys(BENCHES) : positionals;
  const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
  if (unknown.length > 0) {
    process.stderr.write(`no bench is called ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`);
    return 2;
  }
  const figures: Figure[] = [];
  for (const name of names) {
    process.stderr.write(`${name} …\n`);
    figures.push(...((await BENCHES[name]?.()) ?? []));
  }
  process.stdout.write(values.json ? `${JSON.stringify({ schema: 1, figures }, null, 2)}\n` : figureTable(figures));
  return figures.every((figure) => figure.met) ? 0 : 1;
}

process.exitCode = await main();
