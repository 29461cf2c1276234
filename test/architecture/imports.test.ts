import { describe, expect, it } from 'vitest';
import { type ImportEdge, importsBelow, importsOf, read, trackedFiles } from './sources.ts';

/** Built-ins without I/O, which core may use. */
const CORE_BUILT_INS: ReadonlySet<string> = new Set(['node:crypto', 'node:path']);

const show = ({ from, specifier }: ImportEdge) => `${from} imports ${specifier}`;

const breaksCore = ({ target, specifier }: ImportEdge) => !(target?.startsWith('core/') ?? CORE_BUILT_INS.has(specifier));

function breaksHarness({ target, specifier, typeOnly, from }: ImportEdge): boolean {
  // Never runs in a sandbox: it makes the file that does.
  if (from === 'harnesses/guest/bundle.ts' && specifier === 'rolldown') return false;
  if (target === undefined) return !specifier.startsWith('node:');
  return !(target.startsWith('harnesses/') || (typeOnly && target.startsWith('core/')));
}

const breaksContainer = ({ from, specifier }: ImportEdge) => specifier === 'inversify' && from !== 'adapters/compose.ts';

const reachesUp = ({ from, target }: ImportEdge) => target !== undefined && !from.startsWith('test/') && target.startsWith('test/');

describe('imports', () => {
  it('core needs nothing but core, not even for a type', () => {
    expect(importsBelow('core').filter(breaksCore).map(show)).toEqual([]);
  });

  it('what runs in a sandbox needs nothing but Node, and of core its types only', () => {
    expect(importsBelow('harnesses').filter(breaksHarness).map(show)).toEqual([]);
  });

  it('the container is known to the composition root alone', () => {
    const all = importsBelow('core', 'adapters', 'harnesses', 'test');
    expect(all.filter(breaksContainer).map(show)).toEqual([]);
    expect(all.some(({ from, specifier }) => specifier === 'inversify' && from === 'adapters/compose.ts')).toBe(true);
  });

  it('nothing that ships needs a test', () => {
    expect(importsBelow('core', 'adapters', 'harnesses').filter(reachesUp).map(show)).toEqual([]);
  });

  it('control: each rule finds what breaks it', () => {
    const broken = (from: string, code: string, rule: (edge: ImportEdge) => boolean) => importsOf(from, code).some(rule);
    expect(broken('core/run/x.ts', "import { readFileSync } from 'node:fs';", breaksCore)).toBe(true);
    expect(broken('core/run/x.ts', "import type { X } from '../../adapters/x.ts';", breaksCore)).toBe(true);
    expect(broken('core/run/x.ts', "const { x } = await import('zod');", breaksCore)).toBe(true);
    expect(broken('core/run/x.ts', "export { x } from '../../adapters/x.ts';", breaksCore)).toBe(true);
    expect(broken('core/run/x.ts', "import {\n  a,\n  b,\n} from 'kysely';", breaksCore)).toBe(true);
    expect(broken('core/run/x.ts', "import './y.ts';\n// import 'zod'", breaksCore)).toBe(false);
    expect(broken('harnesses/guest/x.ts', "import { SAFETY } from '../../core/limits.ts';", breaksHarness)).toBe(true);
    expect(broken('harnesses/guest/x.ts', "import type { Json } from '../../core/json.ts';", breaksHarness)).toBe(false);
    expect(broken('harnesses/guest/x.ts', "import { Agent } from 'undici';", breaksHarness)).toBe(true);
    expect(broken('adapters/x.ts', "import { Container } from 'inversify';", breaksContainer)).toBe(true);
    expect(broken('core/x.ts', "import type { X } from '../test/support/x.ts';", reachesUp)).toBe(true);
  });
});

describe('the executor port', () => {
  // The port's method on something named executor; a database client's `execute` is not it.
  const CALL = /\bexecutor\)?\??\.execute\(/i;

  it('has exactly one caller', () => {
    const sources = trackedFiles().filter((file) => /^(core|adapters|harnesses)\/.*\.ts$/.test(file));
    expect(sources.filter((file) => CALL.test(read(file)))).toEqual(['core/run/execute-run.ts']);
    // Nobody takes the method off its object to call it under another name.
    const takers = sources.filter((file) => /\{[^}]*\bexecute\b[^}]*\}\s*=\s*[\w.]*executor/i.test(read(file)));
    expect(takers).toEqual([]);
  });

  it('control: a second caller would be seen', () => {
    expect(CALL.test('await seat.executor.execute(task)')).toBe(true);
    expect(CALL.test('client.transaction().execute(work)')).toBe(false);
  });
});
