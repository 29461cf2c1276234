import type { Json } from '../json.ts';

/**
 * The small part of JSON Schema that contracts are written in. One such object is the JSON schema of an input, its TypeScript type and the
 * list of what is shown to rules. Property names are camelCase here and snake_case in Rego; `regoName` is the one rule between them.
 * `default` is what a question that was recorded before its field existed is read with.
 */
export type Contract =
  | { readonly const: string | number }
  | { readonly enum: readonly string[]; readonly description?: string; readonly default?: string }
  | { readonly type: 'string' | 'boolean'; readonly description?: string; readonly pattern?: string; readonly default?: string }
  | { readonly type: 'integer'; readonly description?: string; readonly minimum?: number; readonly maximum?: number }
  | { readonly type: 'array'; readonly items: Contract; readonly description?: string }
  | ClosedContract
  /** Any JSON; its keys may be a caller's own and are never renamed. */
  | { readonly free: true; readonly description: string };

/** An object with exactly these properties, every one of them there: rules never meet an undefined field. */
export interface ClosedContract {
  readonly type: 'object';
  readonly title?: string;
  readonly properties: { readonly [name: string]: Contract };
}

/** TypeScript type of a contract. */
export type TypeOf<C> = C extends { readonly const: infer Value }
  ? Value
  : C extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : C extends { readonly type: 'string' }
      ? string
      : C extends { readonly type: 'integer' }
        ? number
        : C extends { readonly type: 'boolean' }
          ? boolean
          : C extends { readonly type: 'array'; readonly items: infer Items }
            ? readonly TypeOf<Items>[]
            : C extends { readonly type: 'object'; readonly properties: infer Properties }
              ? { readonly [Name in keyof Properties]: TypeOf<Properties[Name]> }
              : Json;

/** Name in Rego of a property: `effectClass` → `effect_class`. */
export const regoName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** JSON schema (draft-07, as OPA and Ajv read it) of what rules see under a contract. */
export function regoSchema(contract: Contract): Readonly<Record<string, unknown>> {
  if ('free' in contract) return { description: contract.description };
  if (!('type' in contract)) return contract;
  if (contract.type === 'array') return { ...contract, items: regoSchema(contract.items) };
  if (contract.type !== 'object') return contract;
  const properties = Object.entries(contract.properties).map(([name, inner]) => [regoName(name), regoSchema(inner)] as const);
  return {
    ...(contract.title === undefined ? {} : { title: contract.title }),
    type: 'object',
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
    additionalProperties: false,
  };
}

/** Compiles a contract to the function that makes what rules see: named properties under their Rego names, and nothing else. */
export function regoProjection(contract: Contract): (value: unknown) => unknown {
  if (!('type' in contract)) return (value) => value;
  if (contract.type === 'array') {
    if (!hasProperties(contract.items)) return (value) => value;
    const each = regoProjection(contract.items);
    return (value) => (value as readonly unknown[]).map(each);
  }
  if (contract.type !== 'object') return (value) => value;
  const fields = Object.entries(contract.properties).map(([name, inner]) => ({
    name,
    absent: 'default' in inner ? inner.default : undefined,
    shown: regoName(name),
    project: regoProjection(inner),
  }));
  return (value) => {
    const shown: Record<string, unknown> = {};
    for (const { name, absent, shown: under, project } of fields)
      shown[under] = project((value as Readonly<Record<string, unknown>>)[name] ?? absent);
    return shown;
  };
}

const hasProperties = (contract: Contract): boolean =>
  'type' in contract && (contract.type === 'object' || (contract.type === 'array' && hasProperties(contract.items)));
