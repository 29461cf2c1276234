import { APPROVAL_STATES } from '../../core/approval/types.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { SAFETY } from '../../core/limits.ts';
import { HARNESSES, PLACEMENTS, TRANSITIONS } from '../../core/run/types.ts';

export type OperatorMethod = keyof KernelOperations;

/** File name of the socket below the state directory. */
export const OPERATOR_SOCKET = 'operator.sock';

/** Largest request: a message of `SAFETY.messageBytes` in which JSON escapes every character. */
export const REQUEST_BYTES = 6 * SAFETY.messageBytes + 4096;

/** Longest wait of `eventsChanged`; a client that wants longer asks again. */
export const WAIT_MS = 30_000;

export const NAME = { type: 'string', pattern: '^[a-z0-9][a-z0-9._-]{0,62}$' } as const;
export const id = (prefix: string) => ({ type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$` }) as const;
export const LIMIT = { type: 'integer', minimum: 1, maximum: 1000 } as const;
export const CURSOR = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
export const BODY = { type: 'string', minLength: 1, maxLength: SAFETY.messageBytes } as const;
/** Said with an answer. */
export const NOTE = { type: 'string', maxLength: 1000 } as const;
const ROLES = { type: 'array', maxItems: 4, uniqueItems: true, items: { enum: ['user', 'approver', 'operator', 'policy'] } } as const;

/** A closed object. */
export function shape(properties: Readonly<Record<string, object>>, required: readonly string[]) {
  return { type: 'object', additionalProperties: false, properties, required };
}

const PERSON = shape({ tenant: NAME, user: NAME }, ['tenant', 'user']);

/**
 * JSON schemas of the arguments of each operation, in order; the trailing ones beyond `required` may be left out. An operation that is
 * missing here does not compile, and one that is not here cannot be called.
 */
export const OPERATOR_METHODS: Readonly<Record<OperatorMethod, { readonly args: readonly object[]; readonly required: number }>> = {
  post: {
    args: [
      shape(
        {
          tenant: NAME,
          user: NAME,
          body: BODY,
          thread: id('thr'),
          placement: { enum: PLACEMENTS },
          harness: { enum: HARNESSES },
          origin: { enum: ['interactive', 'trigger', 'operator'] },
        },
        ['tenant', 'user', 'body'],
      ),
    ],
    required: 1,
  },
  showRun: { args: [id('run')], required: 1 },
  getRun: { args: [id('run')], required: 1 },
  listRuns: {
    args: [
      shape(
        {
          tenant: NAME,
          thread: id('thr'),
          actor: NAME,
          states: { type: 'array', maxItems: 7, items: { enum: Object.keys(TRANSITIONS) } },
          limit: LIMIT,
        },
        ['limit'],
      ),
    ],
    required: 1,
  },
  cancelRun: { args: [id('run')], required: 1 },
  steerRun: { args: [shape({ tenant: NAME, run: id('run'), user: NAME, body: BODY }, ['tenant', 'run', 'user', 'body'])], required: 1 },
  resolveRun: { args: [id('run'), { enum: ['done', 'not-done', 'abort'] }], required: 2 },
  listThreads: { args: [NAME, LIMIT, NAME], required: 2 },
  showThread: { args: [NAME, id('thr')], required: 2 },
  events: { args: [CURSOR, shape({ tenant: NAME, thread: id('thr'), run: id('run') }, []), LIMIT], required: 3 },
  eventsHead: { args: [], required: 0 },
  eventsChanged: { args: [CURSOR, { type: 'integer', minimum: 0, maximum: WAIT_MS }], required: 2 },
  addUser: { args: [shape({ tenant: NAME, name: NAME, roles: ROLES }, ['tenant', 'name', 'roles'])], required: 1 },
  listUsers: { args: [NAME], required: 0 },
  issueToken: {
    args: [
      shape({ tenant: NAME, name: NAME, ttlMs: { type: 'integer', minimum: 1000, maximum: 366 * 24 * 3600 * 1000 } }, [
        'tenant',
        'name',
        'ttlMs',
      ]),
    ],
    required: 1,
  },
  revokeTokens: { args: [shape({ tenant: NAME, name: NAME }, ['tenant', 'name'])], required: 1 },
  disableUser: {
    args: [shape({ tenant: NAME, name: NAME, disabled: { type: 'boolean' } }, ['tenant', 'name', 'disabled'])],
    required: 1,
  },
  buildImage: { args: [shape({ force: { type: 'boolean' } }, ['force'])], required: 1 },
  policyStatus: { args: [], required: 0 },
  listApprovals: {
    args: [
      shape(
        {
          tenant: NAME,
          run: id('run'),
          actor: NAME,
          states: { type: 'array', maxItems: 6, items: { enum: APPROVAL_STATES } },
          limit: LIMIT,
        },
        ['limit'],
      ),
    ],
    required: 1,
  },
  showApproval: { args: [id('apr')], required: 1 },
  answerApproval: {
    args: [shape({ approval: id('apr'), answer: { enum: ['approve', 'deny'] }, note: NOTE }, ['approval', 'answer'])],
    required: 1,
  },
  applyPolicy: { args: [shape({ widen: PERSON }, [])], required: 1 },
  rollBackPolicy: { args: [shape({ digest: { type: 'string', pattern: '^[0-9a-f]{8,64}$' }, by: PERSON }, ['digest', 'by'])], required: 1 },
  policySnapshots: { args: [], required: 0 },
  showDecision: { args: [id('dec')], required: 1 },
  listDecisions: { args: [CURSOR, { type: 'integer', minimum: 1, maximum: 10_000 }], required: 2 },
};

/** Schema of a request body: `{args: [...]}`. */
export function requestSchema(method: OperatorMethod): object {
  const { args, required } = OPERATOR_METHODS[method];
  const tuple = args.length === 0 ? { maxItems: 0 } : { items: args, additionalItems: false, minItems: required, maxItems: args.length };
  return shape({ args: { type: 'array', ...tuple } }, ['args']);
}

/** An answer: the result, or the error with the class that the client raises again. */
export type OperatorAnswer =
  | { readonly result: unknown }
  | {
      readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
      /** Name of the class in core/errors.ts. */
      readonly area: string;
      readonly retryable: boolean;
    };
