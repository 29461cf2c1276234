import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Bundle, loadBundle } from '../../adapters/policy/bundle.ts';
import { isHostPattern } from '../../adapters/policy/formats.ts';
import { toRegoInput } from '../../adapters/policy/marshal.ts';
import { findOpa } from '../../adapters/policy/opa.ts';
import type { ServingSnapshot } from '../../adapters/policy/serving-snapshot.ts';
import { egressInput } from './support/egress.ts';
import { serve } from './support/engine.ts';
import { SHIPPED } from './support/policy-dir.ts';

const TERMS = { ports: [443], schemes: ['https'], methods: ['GET'], paths: ['/**'] };

/** The shipped rules over a list that no gate has looked at. */
function listing(bundle: Bundle, patterns: readonly string[]): Promise<ServingSnapshot> {
  const data = JSON.parse(bundle.dataJson) as { settings: Record<string, unknown> };
  const egress = { hosts: Object.fromEntries(patterns.map((pattern) => [pattern, [TERMS]])), addresses: {}, denied: {} };
  return serve({ ...bundle, dataJson: JSON.stringify({ ...data, settings: { ...data.settings, egress } }) });
}

const allows = (serving: ServingSnapshot, host: string): boolean =>
  serving.ask(JSON.stringify(toRegoInput(egressInput({ host })))).effect === 'allow';

const LABEL = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/;

/** Labels of a full host name in its one form; undefined for anything else. */
function labelsOf(name: string): readonly string[] | undefined {
  const labels = name.split('.');
  const plain = labels.length > 1 && name.length <= 253 && labels.every((label) => LABEL.test(label));
  return plain && !/^([0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '') ? labels : undefined;
}

/** What a list of patterns admits, label by label from the end. */
function admits(patterns: readonly string[], host: string): boolean {
  const labels = labelsOf(host);
  if (labels === undefined) return false;
  return patterns.some((pattern) => {
    if (!pattern.startsWith('*.')) return pattern === host;
    const parent = pattern.slice(2).split('.');
    const anybodys = parent.length < 2 || ['co.uk', 'com.au', 'github.io'].includes(parent.join('.'));
    if (anybodys || labels.length <= parent.length) return false;
    return parent.every((label, at) => labels[labels.length - parent.length + at] === label);
  });
}

const label = fc.constantFrom(
  'example',
  'evil-example',
  'notexample',
  'api',
  'a',
  'x_y',
  'com',
  'co',
  'uk',
  'org',
  'github',
  'io',
  '1',
  '0x7f',
);
const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'));
const pattern = fc.oneof(
  name,
  name.map((text) => `*.${text}`),
  fc.constantFrom('*', '*.', '*.*.com', 'a.*.com', '.example.com', '*example.com'),
);
const twisted = fc
  .tuple(
    name,
    fc.constantFrom<(text: string) => string>(
      (text) => `${text}.`,
      (text) => `.${text}`,
      (text) => text.toUpperCase(),
      (text) => `${text}:443`,
      (text) => `x@${text}`,
      (text) => `${text}.evil.test`,
      (text) => `-${text}`,
      (text) => text.replace('.', '..'),
      (text) => `http://${text}`,
      (text) => `evil${text}`,
      (text) => `*.${text}`,
    ),
  )
  .map(([text, twist]) => twist(text));

describe('BL-073 a host is admitted at the boundary of a label, or not at all', () => {
  test('random hosts against random lists', async () => {
    const bundle = await loadBundle(SHIPPED);
    let admitted = 0;
    for (const patterns of fc.sample(fc.uniqueArray(pattern, { minLength: 5, maxLength: 40 }), { numRuns: 8, seed: 73 })) {
      const serving = await listing(bundle, patterns);
      const parents = patterns.map((text) => text.replace('*', 'a'));
      fc.assert(
        fc.property(fc.oneof(name, twisted, fc.constantFrom(...parents)), (host) => {
          const wanted = admits(patterns, host);
          if (wanted) admitted += 1;
          expect([host, allows(serving, host)]).toEqual([host, wanted]);
        }),
        { numRuns: 400 },
      );
    }
    // Control: both answers were given.
    expect(admitted).toBeGreaterThan(200);
  });

  test('a pattern that the gate takes is one that names a host of its own; a gate that takes all would be seen', async () => {
    const bundle = await loadBundle(SHIPPED);
    const patterns = fc.sample(fc.oneof(pattern, twisted), { numRuns: 600, seed: 70 });
    const serving = await listing(bundle, patterns);
    const named = (text: string) => allows(serving, text.replace('*', 'outwork-probe'));
    const taken = patterns.filter(isHostPattern);
    expect(taken.filter((text) => !named(text))).toEqual([]);
    expect(taken.length).toBeGreaterThan(100);
    expect(patterns.filter((text) => !isHostPattern(text) && !named(text)).length).toBeGreaterThan(100);
  });

  test('a wildcard that the rules take for a hoster’s is one that the gate refuses: it knows more of them, never fewer', async () => {
    const { stdout } = await promisify(execFile)(
      await findOpa(),
      ['eval', '--format', 'raw', '--data', 'outwork/lib', 'data.outwork.lib.hosts._hosters'],
      { cwd: SHIPPED },
    );
    const hosters = JSON.parse(stdout) as string[];
    expect(hosters.length).toBeGreaterThan(30);
    expect(hosters.filter((name) => isHostPattern(`*.${name}`))).toEqual([]);
  });
});
