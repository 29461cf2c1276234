import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FromSchema } from 'json-schema-to-ts';
import { expect, expectTypeOf, test } from 'vitest';
import { inputSchemaText, staleInputSchemas } from '../../adapters/policy/input-schemas.ts';
import { regoName, regoProjection, regoSchema, type TypeOf } from '../../core/policy/contract.ts';
import { CONTRACTS, POLICY_KINDS } from '../../core/policy/contracts.ts';
import { copyOfShipped, SHIPPED } from './support/policy-dir.ts';

test('the schemas that rules are checked against are the kernel’s contracts', async () => {
  expect(await staleInputSchemas(SHIPPED)).toEqual([]);
  expect(readdirSync(join(SHIPPED, 'schemas', 'input')).sort()).toEqual(POLICY_KINDS.map((kind) => `${kind}.json`).sort());
});

test('control: a schema that differs is seen', async () => {
  const dir = await copyOfShipped();
  const { writeFile } = await import('node:fs/promises');
  const file = join(dir, 'schemas', 'input', 'call.json');
  await writeFile(file, readFileSync(file, 'utf8').replace('"once"', '"twice"'));
  expect(await staleInputSchemas(dir)).toEqual(['call']);
});

test.each(POLICY_KINDS)('%s: every field is there always, no other is, and big numbers are text', (kind) => {
  const visit = (schema: unknown): void => {
    if (schema === null || typeof schema !== 'object') return;
    const { type, properties, required, additionalProperties } = schema as Record<string, unknown>;
    if (type === 'object') {
      expect(additionalProperties).toBe(false);
      expect(required).toEqual(Object.keys(properties as object));
    }
    expect(type).not.toBe('number');
    for (const inner of Object.values(schema)) visit(inner);
  };
  visit(JSON.parse(inputSchemaText(kind)));
  expect(regoSchema(CONTRACTS[kind])).toMatchObject({
    properties: { kind: { const: kind }, version: { const: 1 }, time: { type: 'string' } },
  });
});

test('names in Rego are snake_case', () => {
  expect(['kind', 'effectClass', 'wallMsLeft'].map(regoName)).toEqual(['kind', 'effect_class', 'wall_ms_left']);
});

test('objects in lists are projected too, and what the contract does not name is not shown', () => {
  const project = regoProjection({ type: 'array', items: { type: 'object', properties: { oneName: { type: 'string' } } } });
  expect(project([{ oneName: 'a', other: 1 }])).toEqual([{ one_name: 'a' }]);
});

const SAMPLE = {
  type: 'object',
  properties: {
    word: { type: 'string' },
    count: { type: 'integer' },
    yes: { type: 'boolean' },
    pick: { enum: ['a', 'b'] },
    fixed: { const: 1 },
    people: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
  },
} as const;
const SAMPLE_SCHEMA = {
  type: 'object',
  properties: {
    word: { type: 'string' },
    count: { type: 'integer' },
    yes: { type: 'boolean' },
    pick: { enum: ['a', 'b'] },
    fixed: { const: 1 },
    people: {
      type: 'array',
      items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
    },
  },
  required: ['word', 'count', 'yes', 'pick', 'fixed', 'people'],
  additionalProperties: false,
} as const;

test('the type of a contract is the type of its JSON schema', () => {
  expect(regoSchema(SAMPLE)).toEqual(SAMPLE_SCHEMA);
  type Writable<T> = T extends readonly (infer Item)[]
    ? Writable<Item>[]
    : T extends object
      ? { -readonly [K in keyof T]: Writable<T[K]> }
      : T;
  expectTypeOf<Writable<TypeOf<typeof SAMPLE>>>().toEqualTypeOf<FromSchema<typeof SAMPLE_SCHEMA>>();
});
