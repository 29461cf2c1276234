// Completes what the compiler emitted to build/package: the files that the code reads at run time, at the same places relative to it.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildGuest } from '../harnesses/guest/bundle.ts';

const root = join(import.meta.dirname, '..');
const target = join(root, 'build', 'package');

const RESOURCES = [
  'policies',
  'harnesses/guest/init.sh',
  'harnesses/scripted/scenarios',
  'harnesses/scripted/scenario.schema.json',
  'adapters/compare/results.schema.json',
];

for (const path of RESOURCES) {
  rmSync(join(target, path), { recursive: true, force: true });
  mkdirSync(dirname(join(target, path)), { recursive: true });
  cpSync(join(root, path), join(target, path), { recursive: true });
}
await buildGuest({ outFile: join(target, 'harnesses', 'guest', 'guest.cjs') });

const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
writeFileSync(join(target, 'package.json'), `${JSON.stringify({ name, version, license, private: true, type: 'module' }, null, 2)}\n`);
