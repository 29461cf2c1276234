import { createHash } from 'node:crypto';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Whether a value of any form is names with values: no list, not null. */
export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Canonical JSON: keys sorted by code unit, no white space (RFC 8785 for the values we admit: finite numbers, well-formed strings). */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

export const sha256Hex = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** Digest of a value's canonical JSON, labelled so that digests of different purposes never collide. */
export const digestOf = (label: string, value: unknown): string => sha256Hex(`${label}\0${canonicalJson(value)}`);

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxElements: number;
}

export type JsonFault = 'too_deep' | 'too_many_elements' | 'not_finite' | 'ill_formed_text';

/**
 * The first reason why `value` may not be stored, digested or shown to policy; undefined when there is none.
 * NUL and lone surrogates are refused because the database would change or reject them, and a digest would then differ on redrive.
 */
export function jsonFault(value: unknown, bounds: JsonBounds, depth = 0): JsonFault | undefined {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed() ? 'ill_formed_text' : undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'not_finite';
  if (value === null || typeof value !== 'object') return undefined;
  if (depth >= bounds.maxDepth) return 'too_deep';
  const items = Array.isArray(value) ? value : Object.values(value);
  if (items.length > bounds.maxElements) return 'too_many_elements';
  if (!Array.isArray(value)) {
    for (const key of Object.keys(value)) if (key.includes('\0') || !key.isWellFormed()) return 'ill_formed_text';
  }
  for (const item of items) {
    const fault = jsonFault(item, bounds, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Nesting depth of JSON text, counted without parsing it; stops once `limit` is passed. */
export function jsonTextDepth(text: string, limit: number): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i += 1;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
      if (deepest > limit) return deepest;
    } else if (c === 0x7d || c === 0x5d) depth -= 1;
  }
  return deepest;
}
