import type { EffectClass } from '../../core/capability/types.ts';
import type { Obligation, PolicyInput } from '../../core/policy/types.ts';

/**
 * The one place where names change between TypeScript (camelCase) and Rego (snake_case).
 * `args` is the capability's own projection and passes as it is: its keys may be a caller's data.
 *
 * @returns what rules read as `input`, field by field: what is not named here is not shown
 */
export function toRegoInput(input: PolicyInput): Readonly<Record<string, unknown>> {
  const { version, kind, scope, actor, origin, placement, engine, wall, time } = input;
  const base = {
    version,
    kind,
    scope: { tenant: scope.tenant, user: scope.user, thread: scope.thread, run: scope.run },
    actor: { user: actor.user, roles: actor.roles },
    origin,
    placement,
    engine,
    wall,
    time,
  };
  if (input.kind === 'placement') return { ...base, harness: input.harness, profile: input.profile };
  return {
    ...base,
    capability: input.capability,
    caller: input.caller,
    effect_class: input.effectClass,
    args: input.args,
    args_digest: input.argsDigest,
    calls_used: input.callsUsed,
  };
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
    default:
      return typeof kind === 'string' ? 'unknown' : 'malformed';
  }
}

const isBound = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isEffectClass = (value: unknown): value is EffectClass => value === 'pure' || value === 'idempotent' || value === 'once';
