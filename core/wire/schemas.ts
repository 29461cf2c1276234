import { SAFETY } from '../limits.ts';
import { type OperationName, WIRE_VERSION } from './protocol.ts';

/**
 * JSON Schemas of every body of the membrane, request and reply. The same objects validate what a guest sends and make the OpenAPI
 * document. `test/membrane/schema-types.ts` holds each to its TypeScript type at compile time.
 */

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
/** Free JSON: bounded by the body's size and depth, judged by the capability's own descriptor. */
const json = {} as const;
const id = { type: 'string', minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_.:-]+$' } as const;
const count = { type: 'integer', minimum: 0, maximum: MAX_INTEGER } as const;
const code = { type: 'string', minLength: 1, maxLength: 64, pattern: '^[a-z][a-z0-9_.]*$' } as const;
const message = { type: 'string', maxLength: 4096 } as const;
const path = { type: 'string', maxLength: 4096 } as const;
const name = { type: 'string', minLength: 1, maxLength: 128 } as const;
const output = { type: 'string', maxLength: SAFETY.outputBytes } as const;
const fileBody = { type: 'string', maxLength: Math.ceil((SAFETY.fileBytes * 4) / 3) + 4 } as const;
const encoding = { type: 'string', enum: ['utf8', 'base64'] } as const;
const argv = { type: 'array', minItems: 1, maxItems: SAFETY.argvItems, items: { type: 'string', maxLength: SAFETY.argvBytes } } as const;

export const emptySchema = { type: 'object', additionalProperties: false, properties: {} } as const;

export const wireErrorSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['code', 'message'],
  properties: { code, message },
} as const;

/** Body of every answer with a status of 400 or more. */
export const errorReplySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['error'],
  properties: { error: wireErrorSchema },
} as const;

export const helloRequestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['wire', 'guest'],
  properties: { wire: count, guest: { type: 'string', maxLength: 128 } },
} as const;

export const helloReplySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['wire', 'sandbox'],
  properties: { wire: { type: 'integer', const: WIRE_VERSION }, sandbox: id },
} as const;

const stream = { type: 'string', enum: ['stdout', 'stderr'] } as const;

/** How a command ended, as a guest tells it. */
export const commandOutcomeSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['exitCode', 'signal', 'timedOut', 'stdout', 'stderr', 'stdoutBytes', 'stderrBytes', 'truncated', 'wallMs'],
  properties: {
    exitCode: { anyOf: [{ type: 'integer', minimum: 0, maximum: 255 }, { type: 'null' }] },
    signal: { anyOf: [{ type: 'string', maxLength: 16 }, { type: 'null' }] },
    timedOut: { type: 'boolean' },
    stdout: output,
    stderr: output,
    stdoutBytes: count,
    stderrBytes: count,
    truncated: { type: 'boolean' },
    wallMs: { type: 'number', minimum: 0, maximum: MAX_INTEGER },
    binary: { type: 'array', maxItems: 2, items: stream },
    saved: {
      type: 'array',
      maxItems: 2,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['stream', 'path', 'bytes', 'truncated'],
        properties: { stream, path, bytes: count, truncated: { type: 'boolean' } },
      },
    },
    background: {
      type: 'object',
      additionalProperties: false,
      required: ['id', 'pid', 'pgid', 'log'],
      properties: { id, pid: count, pgid: count, log: path },
    },
  },
} as const;

const exitCode = { anyOf: [{ type: 'integer', minimum: 0, maximum: 255 }, { type: 'null' }] } as const;
const signal = { anyOf: [{ type: 'string', maxLength: 16 }, { type: 'null' }] } as const;

const backgroundCommandSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'pid', 'pgid', 'log', 'running', 'exitCode', 'signal', 'bytes', 'ageMs'],
  properties: {
    id,
    pid: count,
    pgid: count,
    log: path,
    running: { type: 'boolean' },
    exitCode,
    signal,
    bytes: count,
    ageMs: count,
    ports: { type: 'array', maxItems: 64, items: { type: 'integer', minimum: 1, maximum: 65_535 } },
  },
} as const;

const backgroundOperationSchema = {
  oneOf: [
    { type: 'object', additionalProperties: false, required: ['op'], properties: { op: { type: 'string', const: 'list' } } },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'id', 'maxBytes'],
      properties: { op: { type: 'string', const: 'tail' }, id, maxBytes: count },
    },
    { type: 'object', additionalProperties: false, required: ['op', 'id'], properties: { op: { type: 'string', const: 'kill' }, id } },
  ],
} as const;

const backgroundResultSchema = {
  oneOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'commands'],
      properties: { op: { type: 'string', const: 'list' }, commands: { type: 'array', maxItems: 128, items: backgroundCommandSchema } },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'command', 'text'],
      properties: { op: { type: 'string', const: 'tail' }, command: backgroundCommandSchema, text: output },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'command'],
      properties: { op: { type: 'string', const: 'kill' }, command: backgroundCommandSchema },
    },
  ],
} as const;

const commandProgressSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['stdoutBytes', 'stderrBytes', 'tail'],
  properties: { stdoutBytes: count, stderrBytes: count, tail: { type: 'string', maxLength: 4096 } },
} as const;

const toolCommandSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['argv', 'timeoutMs', 'outputBytes'],
  properties: {
    argv,
    cwd: path,
    env: { type: 'object', maxProperties: 256, additionalProperties: { type: 'string', maxLength: SAFETY.argvBytes } },
    stdin: { type: 'string', maxLength: SAFETY.membraneBodyBytes },
    timeoutMs: count,
    outputBytes: count,
    save: { type: 'object', additionalProperties: false, required: ['path'], properties: { path, bytes: count } },
    background: { type: 'boolean' },
    lifetimeMs: count,
  },
} as const;

const fileOperationSchema = {
  oneOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'path', 'maxBytes'],
      properties: { op: { type: 'string', const: 'read' }, path, maxBytes: count },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'path', 'body', 'encoding'],
      properties: { op: { type: 'string', const: 'write' }, path, body: fileBody, encoding, append: { type: 'boolean' } },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'path', 'maxEntries'],
      properties: { op: { type: 'string', const: 'list' }, path, maxEntries: count },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'sha256', 'name', 'body'],
      properties: {
        op: { type: 'string', const: 'place' },
        sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        name: { type: 'string', minLength: 1, maxLength: 255 },
        body: fileBody,
      },
    },
  ],
} as const;

export const fileResultSchema = {
  oneOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'body', 'encoding', 'size', 'truncated'],
      properties: { op: { type: 'string', const: 'read' }, body: fileBody, encoding, size: count, truncated: { type: 'boolean' } },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'size'],
      properties: { op: { type: 'string', const: 'write' }, size: count },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['op', 'entries', 'truncated'],
      properties: {
        op: { type: 'string', const: 'list' },
        entries: {
          type: 'array',
          maxItems: 10_000,
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['name', 'kind', 'size'],
            properties: {
              name: { type: 'string', maxLength: 1024 },
              kind: { type: 'string', enum: ['file', 'directory', 'link', 'other'] },
              size: count,
            },
          },
        },
        truncated: { type: 'boolean' },
      },
    },
  ],
} as const;

/** One line of the `control` stream. */
export const controlMessageSchema = {
  oneOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'run', 'token', 'harness', 'deadlineMs'],
      properties: {
        type: { type: 'string', const: 'run' },
        run: id,
        token: { type: 'string', maxLength: 2048 },
        harness: name,
        deadlineMs: count,
      },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'run'],
      properties: { type: { type: 'string', enum: ['cancel', 'forget'] }, run: id },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'id', 'run', 'command'],
      properties: { type: { type: 'string', const: 'exec' }, id, run: id, command: toolCommandSchema },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'id'],
      properties: { type: { type: 'string', const: 'exec.cancel' }, id },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'id', 'operation'],
      properties: { type: { type: 'string', const: 'file' }, id, operation: fileOperationSchema },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'id', 'operation'],
      properties: { type: { type: 'string', const: 'background' }, id, operation: backgroundOperationSchema },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['type'],
      properties: { type: { type: 'string', const: 'ping' } },
    },
  ],
} as const;

/** Exactly one of `exec`, `file`, `background`, `progress` and `error` beside the id. */
export const controlReplySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['id'],
  minProperties: 2,
  maxProperties: 2,
  properties: {
    id,
    exec: commandOutcomeSchema,
    file: fileResultSchema,
    background: backgroundResultSchema,
    progress: commandProgressSchema,
    error: wireErrorSchema,
  },
} as const;

export const runContextSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['run', 'thread', 'harness', 'messages', 'local'],
  properties: {
    run: id,
    thread: id,
    harness: name,
    messages: {
      type: 'array',
      maxItems: 1000,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['seq', 'author', 'user', 'body'],
        properties: {
          seq: count,
          author: { type: 'string', enum: ['user', 'agent'] },
          user: name,
          body: { type: 'string', maxLength: SAFETY.messageBytes },
        },
      },
    },
    local: { type: 'boolean' },
  },
} as const;

export const callRequestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['key', 'capability', 'args'],
  properties: {
    key: {
      type: 'object',
      additionalProperties: false,
      required: ['step', 'call'],
      properties: { step: count, call: count },
    },
    // A name that is not known is told apart from one that is no name, because it goes into the event log.
    capability: { type: 'string', minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_.:-]+$' },
    args: json,
  },
} as const;

const doneReply = {
  type: 'object',
  additionalProperties: false,
  required: ['effect', 'result', 'replayed'],
  properties: {
    effect: { type: 'string', const: 'done' },
    result: json,
    replayed: { type: 'boolean' },
    steering: { type: 'boolean', const: true },
  },
} as const;
const permitReply = {
  type: 'object',
  additionalProperties: false,
  required: ['effect', 'permit'],
  properties: {
    effect: { type: 'string', const: 'permit' },
    permit: {
      type: 'object',
      additionalProperties: false,
      required: ['id', 'deadlineMs', 'timeoutMs', 'outputBytes'],
      properties: { id, deadlineMs: count, timeoutMs: count, outputBytes: count, argv },
    },
  },
} as const;
const deniedReply = {
  type: 'object',
  additionalProperties: false,
  required: ['effect', 'reasons'],
  properties: {
    effect: { type: 'string', const: 'denied' },
    reasons: {
      type: 'array',
      maxItems: 64,
      items: { type: 'object', additionalProperties: false, required: ['code', 'message'], properties: { code: name, message } },
    },
  },
} as const;
const parkedReply = {
  type: 'object',
  additionalProperties: false,
  required: ['effect', 'gate'],
  properties: {
    effect: { type: 'string', const: 'parked' },
    gate: {
      type: 'object',
      additionalProperties: false,
      required: ['kind', 'ref', 'reason'],
      properties: {
        kind: { type: 'string', enum: ['approval', 'credential', 'setup', 'unknown', 'resource'] },
        ref: { type: 'string', maxLength: 128 },
        reason: message,
      },
    },
  },
} as const;

export const callReplySchema = { oneOf: [doneReply, permitReply, deniedReply, parkedReply] } as const;
export const settledReplySchema = { oneOf: [doneReply, deniedReply, parkedReply] } as const;

/** One line of a `call.stream` response. */
export const streamLineSchema = {
  oneOf: [
    { type: 'object', additionalProperties: false, required: ['delta'], properties: { delta: { type: 'string' } } },
    { type: 'object', additionalProperties: false, required: ['reply'], properties: { reply: callReplySchema } },
    errorReplySchema,
  ],
} as const;

/** Exactly one of `outcome` and `error` beside the permit. */
export const permitCloseSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['permit'],
  minProperties: 2,
  maxProperties: 2,
  properties: { permit: id, outcome: commandOutcomeSchema, error: wireErrorSchema },
} as const;

export const progressRequestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['data'],
  properties: { data: json },
} as const;

export const steerRequestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['afterSeq'],
  properties: { afterSeq: count },
} as const;

export const steerReplySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['messages', 'cancelled'],
  properties: {
    messages: {
      type: 'array',
      maxItems: 1000,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['seq', 'body'],
        properties: { seq: count, body: { type: 'string', maxLength: SAFETY.messageBytes } },
      },
    },
    cancelled: { type: 'boolean' },
  },
} as const;

export const checkpointReplySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['checkpoint'],
  properties: {
    checkpoint: {
      anyOf: [
        {
          type: 'object',
          additionalProperties: false,
          required: ['schema', 'version', 'body'],
          properties: { schema: name, version: count, body: { type: 'string', maxLength: SAFETY.checkpointBytes } },
        },
        { type: 'null' },
      ],
    },
  },
} as const;

export const exitClaimSchema = {
  oneOf: [
    {
      type: 'object',
      additionalProperties: false,
      required: ['kind'],
      properties: { kind: { type: 'string', enum: ['completed', 'parked', 'cancelled'] } },
    },
    {
      type: 'object',
      additionalProperties: false,
      required: ['kind', 'code', 'message'],
      properties: { kind: { type: 'string', const: 'failed' }, code, message },
    },
  ],
} as const;

export interface OperationSchemas {
  /** Undefined only for `control`, which is a GET. */
  readonly request: object | undefined;
  readonly reply: object;
  /** The reply is a stream of newline-delimited JSON, one such object a line. */
  readonly streams: boolean;
}

/** Bodies of every operation. */
export const OPERATION_SCHEMAS = {
  hello: { request: helloRequestSchema, reply: helloReplySchema, streams: false },
  control: { request: undefined, reply: controlMessageSchema, streams: true },
  'control.reply': { request: controlReplySchema, reply: emptySchema, streams: false },
  'context.get': { request: emptySchema, reply: runContextSchema, streams: false },
  call: { request: callRequestSchema, reply: callReplySchema, streams: false },
  'call.stream': { request: callRequestSchema, reply: streamLineSchema, streams: true },
  'permit.close': { request: permitCloseSchema, reply: settledReplySchema, streams: false },
  'progress.emit': { request: progressRequestSchema, reply: emptySchema, streams: false },
  'steer.next': { request: steerRequestSchema, reply: steerReplySchema, streams: false },
  'checkpoint.get': { request: emptySchema, reply: checkpointReplySchema, streams: false },
  exit: { request: exitClaimSchema, reply: emptySchema, streams: false },
} as const satisfies Record<OperationName, OperationSchemas>;
