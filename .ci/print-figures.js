// Prints the table of a figures document that `npm run bench -- --json` wrote; fails when there is none.
import { readFileSync } from 'node:fs';
import { figureTable } from '../test/bench/table.ts';

const [, , file] = process.argv;
process.stdout.write(figureTable(JSON.parse(readFileSync(file, 'utf8')).figures));
