import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BENCH_PARTS, BENCHES } from './list.ts';

test('every file of the bench is in the list, or is a part of one that is', () => {
  const files = readdirSync(new URL('.', import.meta.url))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => name.replace(/\.ts$/, ''));
  expect(files.sort()).toEqual([...Object.keys(BENCHES), ...BENCH_PARTS].sort());
});
