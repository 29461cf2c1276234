import { canonicalJson, isMapping } from '../../core/json.ts';

/**
 * What a schema of a site's data may say of a value (`"narrows": …`): how it changes when less is allowed.
 * `more`, `fewer`: entries of a list or a mapping; `higher`, `lower`: a number.
 */
export const DIRECTIONS = ['more', 'fewer', 'higher', 'lower'] as const;

type Direction = (typeof DIRECTIONS)[number];

interface Schema {
  readonly narrows?: Direction;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

/** Places of a value that changed, and not in the direction that its schema says narrows. */
export function dataFaults(schema: Schema, now: unknown, next: unknown, at: string): readonly string[] {
  if (now !== undefined && next !== undefined && canonicalJson(now) === canonicalJson(next)) return [];
  if (schema.narrows !== undefined && goes(schema.narrows, now, next)) return [];
  if (schema.narrows === undefined && isMapping(now) && isMapping(next)) {
    const keys = [...new Set([...Object.keys(now), ...Object.keys(next)])].sort();
    return keys.flatMap((key) => dataFaults(schemaOf(schema, key), now[key], next[key], `${at}/${key}`));
  }
  return [schema.narrows === undefined ? `${at} is changed` : `${at} is changed, and not by ${WAYS[schema.narrows]}`];
}

const WAYS: Readonly<Record<Direction, string>> = {
  more: 'entries more',
  fewer: 'entries fewer',
  higher: 'a higher number',
  lower: 'a lower number',
};

function schemaOf({ properties = {}, additionalProperties }: Schema, key: string): Schema {
  if (Object.hasOwn(properties, key)) return properties[key] ?? {};
  return typeof additionalProperties === 'object' ? additionalProperties : {};
}

function goes(direction: Direction, now: unknown, next: unknown): boolean {
  switch (direction) {
    case 'more':
      return holds(next, now);
    case 'fewer':
      return holds(now, next);
    case 'higher':
      return typeof now === 'number' && typeof next === 'number' && next > now;
    case 'lower':
      return typeof now === 'number' && typeof next === 'number' && next < now;
  }
}

/** Whether a list or mapping has every entry of another one. */
function holds(whole: unknown, part: unknown): boolean {
  if (Array.isArray(whole) && Array.isArray(part)) {
    const entries = new Set(whole.map((entry) => canonicalJson(entry)));
    return part.every((entry) => entries.has(canonicalJson(entry)));
  }
  if (!isMapping(whole) || !isMapping(part)) return false;
  return Object.entries(part).every(([key, value]) => Object.hasOwn(whole, key) && canonicalJson(whole[key]) === canonicalJson(value));
}
