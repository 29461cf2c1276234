import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { regoSchema } from '../../core/policy/contract.ts';
import { CONTRACTS, POLICY_KINDS, type PolicyKind } from '../../core/policy/contracts.ts';

/** Text of `schemas/input/<kind>.json`: what `opa check --schema` holds rules to, made from the kernel's own contract. */
export function inputSchemaText(kind: PolicyKind): string {
  return `${jsonText({ $schema: 'http://json-schema.org/draft-07/schema#', ...regoSchema(CONTRACTS[kind]) })}\n`;
}

/** Writes the schemas that differ. @returns their kinds */
export async function writeInputSchemas(dir: string): Promise<readonly PolicyKind[]> {
  const folder = join(dir, 'schemas', 'input');
  const stale = await staleInputSchemas(dir);
  if (stale.length > 0) await mkdir(folder, { recursive: true });
  for (const kind of stale) await writeFile(join(folder, `${kind}.json`), inputSchemaText(kind));
  return stale;
}

/** Kinds whose schema below `dir` is not the kernel's contract. */
export async function staleInputSchemas(dir: string): Promise<readonly PolicyKind[]> {
  const texts = await Promise.all(
    POLICY_KINDS.map((kind) => readFile(join(dir, 'schemas', 'input', `${kind}.json`), 'utf8').catch(() => '')),
  );
  return POLICY_KINDS.filter((kind, at) => texts[at] !== inputSchemaText(kind));
}

const WIDTH = 140;

/** Indented JSON as the formatter of this repository writes it: a list of plain values is on one line when it fits. */
function jsonText(value: unknown, indent = '', lead = ''): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const line = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`;
    if (indent.length + lead.length + line.length < WIDTH) return line;
    return `[\n${value.map((item) => `${inner}${JSON.stringify(item)}`).join(',\n')}\n${indent}]`;
  }
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(([key, item]) => {
    const name = `${JSON.stringify(key)}: `;
    return `${inner}${name}${jsonText(item, inner, name)}`;
  });
  return `{\n${members.join(',\n')}\n${indent}}`;
}
