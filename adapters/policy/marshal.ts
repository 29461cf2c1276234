import type { EffectClass } from '../../core/capability/types.ts';
import { regoProjection } from '../../core/policy/contract.ts';
import { CONTRACTS, POLICY_KINDS } from '../../core/policy/contracts.ts';
import type { Obligation, PolicyInput } from '../../core/policy/types.ts';
import { inputFault, textFault } from './bounds.ts';

const PROJECTIONS = new Map<string, (input: unknown) => unknown>(POLICY_KINDS.map((kind) => [kind, regoProjection(CONTRACTS[kind])]));

/**
 * What rules read as `input`: camelCase becomes snake_case, field by field as the contract of the kind lists them; what it does not name is
 * not shown. `args` is the capability's own projection and passes as it is: its keys may be a caller's data.
 *
 * @throws TypeError for a kind that has no contract
 */
export function toRegoInput(input: PolicyInput): Readonly<Record<string, unknown>> {
  const project = PROJECTIONS.get(input.kind);
  if (project === undefined) throw new TypeError(`There is no contract of the kind ${String(input.kind)}`);
  return project(input) as Readonly<Record<string, unknown>>;
}

/** The text that rules read, or why they are not shown this question. @throws TypeError for a kind that has no contract */
export function regoText(input: PolicyInput): { readonly text: string } | { readonly fault: string } {
  const fault = inputFault(input);
  if (fault !== undefined) return { fault };
  const text = JSON.stringify(toRegoInput(input));
  const tooLarge = textFault(text);
  return tooLarge === undefined ? { text } : { fault: tooLarge };
}

/** An obligation whose kind the kernel does not know is told apart from one that is badly formed. */
export type ObligationFault = 'unknown' | 'malformed';

/** Reads one obligation of a decision document; every key must be known and every value in range. */
export function fromRegoObligation(value: unknown): Obligation | ObligationFault {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return 'malformed';
  const { kind, ...rest } = value as Record<string, unknown>;
  const only = (key: string): unknown => (Object.keys(rest).length === 1 && Object.hasOwn(rest, key) ? rest[key] : undefined);
  switch (kind) {
    case 'redact':
    case 'audit':
      return Object.keys(rest).length === 0 ? { kind } : 'malformed';
    case 'output_limit': {
      const bytes = only('bytes');
      return isBound(bytes) ? { kind, bytes } : 'malformed';
    }
    case 'reserve': {
      const wallMs = only('wall_ms');
      return isBound(wallMs) ? { kind, wallMs } : 'malformed';
    }
    case 'effect_class': {
      const effectClass = only('class');
      return isEffectClass(effectClass) ? { kind, class: effectClass } : 'malformed';
    }
    case 'leaks': {
      const { exact, shapes } = rest;
      const whole = Object.keys(rest).length === 2 && (exact === 'redact' || exact === 'block') && isShapeAction(shapes);
      return whole ? { kind, exact, shapes } : 'malformed';
    }
    default:
      return typeof kind === 'string' ? 'unknown' : 'malformed';
  }
}

const isBound = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isShapeAction = (value: unknown): value is 'warn' | 'redact' | 'block' => value === 'warn' || value === 'redact' || value === 'block';
const isEffectClass = (value: unknown): value is EffectClass => value === 'pure' || value === 'idempotent' || value === 'once';
