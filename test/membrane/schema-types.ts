import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import type { CallReply, CallRequest, CommandOutcome } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { FileResult } from '../../core/ports/placement.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import type {
  CheckpointReply,
  ControlMessage,
  ControlReply,
  HelloReply,
  HelloRequest,
  PermitClose,
  ProgressRequest,
  RunContext,
  SteerReply,
  SteerRequest,
  StreamLine,
} from '../../core/wire/protocol.ts';
import type { commandOutcomeSchema, fileResultSchema, OPERATION_SCHEMAS as schemas } from '../../core/wire/schemas.ts';

/**
 * Compile-time equality of schemas and types: a field added to one side only fails `tsc`. Free JSON is `unknown` on both sides;
 * `readonly` is taken off, because schemas do not know it.
 */
type Plain<T> = unknown extends T
  ? unknown
  : Json extends T
    ? unknown
    : T extends readonly (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { -readonly [K in keyof T]: Plain<T[K]> }
        : T;

/** As `Plain`, with every field required: without it, a field that is optional and on one side only would pass. */
type Full<T> = unknown extends T
  ? unknown
  : T extends readonly (infer Item)[]
    ? Full<Item>[]
    : T extends object
      ? { [K in keyof T]-?: Full<T[K]> }
      : T;

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Holds<S, T> = S extends JSONSchema
  ? Both<Same<Plain<FromSchema<S>>, Plain<T>>, Same<Full<Plain<FromSchema<S>>>, Full<Plain<T>>>>
  : false;
type Both<A, B> = [A, B] extends [true, true] ? true : false;

const holds = <Check extends true>(check: Check): Check => check;

type Schemas = typeof schemas;
export const EQUALITIES = [
  holds<Holds<typeof commandOutcomeSchema, CommandOutcome>>(true),
  holds<Holds<typeof fileResultSchema, FileResult>>(true),
  holds<Holds<Schemas['hello']['request'], HelloRequest>>(true),
  holds<Holds<Schemas['hello']['reply'], HelloReply & { readonly wire: 1 }>>(true),
  holds<Holds<Schemas['control']['reply'], ControlMessage>>(true),
  holds<Holds<Schemas['control.reply']['request'], ControlReply>>(true),
  holds<Holds<Schemas['context.get']['reply'], RunContext>>(true),
  holds<Holds<Schemas['call']['request'], CallRequest>>(true),
  holds<Holds<Schemas['call']['reply'], CallReply>>(true),
  holds<Holds<Schemas['call.stream']['reply'], StreamLine>>(true),
  holds<Holds<Schemas['permit.close']['request'], PermitClose>>(true),
  holds<Holds<Schemas['permit.close']['reply'], Exclude<CallReply, { effect: 'permit' }>>>(true),
  holds<Holds<Schemas['progress.emit']['request'], ProgressRequest>>(true),
  holds<Holds<Schemas['steer.next']['request'], SteerRequest>>(true),
  holds<Holds<Schemas['steer.next']['reply'], SteerReply>>(true),
  holds<Holds<Schemas['checkpoint.get']['reply'], CheckpointReply>>(true),
  holds<Holds<Schemas['exit']['request'], ExitClaim>>(true),
] as const;

// @ts-expect-error the check is not vacuous: a reply type is not a request type
holds<Holds<Schemas['steer.next']['reply'], SteerRequest>>(true);
// @ts-expect-error an extra optional field on the type's side is seen
holds<Holds<Schemas['steer.next']['request'], SteerRequest & { readonly extra?: { readonly deep: number } }>>(true);
