import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const THREATS = new URL('../../threat-model/', import.meta.url);
const ATTACKS = new URL('../attack/', import.meta.url);

const files = readdirSync(THREATS).filter((name) => /^T\d\d-.*\.md$/.test(name));
const attacks = new Map(
  readdirSync(ATTACKS)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => [`test/attack/${name}`, readFileSync(new URL(name, ATTACKS), 'utf8')]),
);

describe('the threat model', () => {
  it.each(files)('%s names tests, and each of them exists', (name) => {
    const id = name.slice(0, 3);
    const text = readFileSync(new URL(name, THREATS), 'utf8');
    expect(text.startsWith(`# ${id} `)).toBe(true);
    const named = [...text.matchAll(/^- `(test\/attack\/[\w-]+\.test\.ts)`: (.+)$/gm)];
    expect(named.length).toBeGreaterThan(0);
    for (const [, file, test] of named) {
      const source = attacks.get(file as string) ?? '';
      // Tests of a table are named from its fields.
      const [, title] = /^T\d\d (?:tool|executor|harness): (.+)$/.exec(test as string) ?? [];
      const found =
        source.includes(test as string) || (title !== undefined && source.includes(`threat: '${id}'`) && source.includes(title));
      expect(found, `${file}: ${test}`).toBe(true);
    }
  });

  it('every threat that an attack test names has a file', () => {
    const named = [...attacks.values()].flatMap((source) => [...source.matchAll(/'(T\d\d)[' ]/g)].map(([, id]) => id));
    expect(named.length).toBeGreaterThan(0);
    expect([...new Set(named)].filter((id) => !files.some((name) => name.startsWith(`${id}-`)))).toEqual([]);
  });
});
