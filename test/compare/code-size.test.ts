import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { countCode } from '../../adapters/compare/code-size.ts';

const lines = (file: string): number => readFileSync(file, 'utf8').split('\n').length - 1;

test('a host loop needs its executor and what binds it in the process', async () => {
  const code = await countCode('host-loop-shell');
  expect(code?.files).toBeGreaterThanOrEqual(2);
  expect(code?.lines).toBeGreaterThanOrEqual(lines('adapters/executor/host-loop-executor.ts') + lines('adapters/membrane/in-process.ts'));
});

test('what every sandbox needs belongs to no placement', async () => {
  const code = await countCode('persistent-per-user');
  const own = ['adapters/executor/guest-executor.ts', 'harnesses/guest/membrane-client.ts', 'harnesses/guest/harnesses.ts'];
  expect(code).toEqual({ files: own.length, lines: own.reduce((sum, file) => sum + lines(file), 0) });
  expect(await countCode('disposable-per-run')).toEqual(code);
});
