import type { Json } from '../json.ts';
import { CAPACITY, SAFETY } from '../limits.ts';
import type { FileOperation } from '../ports/placement.ts';
import { clipText } from './truncate.ts';
import {
  CAPABILITIES,
  type Caller,
  type CapabilityName,
  type EffectClass,
  type Enforcer,
  type ShellBackgroundArgs,
  type ShellExecArgs,
} from './types.ts';

/** A JSON Schema (2020-12) as plain data. */
type JsonSchema = { readonly [key: string]: unknown };

/**
 * Everything the kernel knows about one capability, in one place.
 * `runsIn` says who carries an allowed call out: the kernel itself, the store (in the transaction that closes the call), the sandbox's
 * resident file helper, a command in the sandbox (by permit where the executor lives there), or the guest that looks after background
 * commands, whom the kernel asks in every placement.
 */
export interface CapabilityDescriptor {
  readonly name: CapabilityName;
  readonly callers: readonly Caller[];
  readonly effectClass: EffectClass;
  readonly runsIn: 'gateway' | 'store' | 'files' | 'command' | 'background';
  readonly args: JsonSchema;
  /** What policy sees of the arguments: bounded, canonical. */
  project(args: Json): Json;
  /** What the ledger holds a repeated key to, when not all arguments are its identity. */
  identity?(args: Json): Json;
  /** One line for people: evidence of what was asked. The pipeline scrubs it, then cuts it. */
  summarize(args: Json): string;
  /** Longest time from dispatch to the end. */
  permitMs(args: Json): number;
}

const text = (maxLength: number): JsonSchema => ({ type: 'string', maxLength });
const object = (properties: Record<string, JsonSchema>, required: readonly string[]): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const path = text(1024);
const size = (value: string): number => Buffer.byteLength(value);

/** An argument longer than this is shown to policy by its start and its length: enough to match programs, flags, hosts and paths. */
const PROJECTED_CHARACTERS = 512;
const PROJECTED_ITEMS = 64;

const model: CapabilityDescriptor = {
  name: 'model.generate',
  callers: ['executor'],
  effectClass: 'idempotent',
  runsIn: 'gateway',
  args: object(
    {
      messages: { type: 'array', minItems: 1, maxItems: 512, items: { type: 'object' } },
      tools: {
        type: 'array',
        maxItems: 64,
        items: object({ name: text(64), description: text(4096), parameters: {} }, ['name', 'description']),
      },
    },
    ['messages'],
  ),
  project: (args) => {
    const { messages, tools = [] } = args as unknown as { messages: readonly unknown[]; tools?: readonly { name: string }[] };
    return { messages: messages.length, tools: tools.map((tool) => tool.name).slice(0, PROJECTED_ITEMS) };
  },
  summarize: (args) => `${(args as unknown as { messages: readonly unknown[] }).messages.length} messages`,
  permitMs: () => CAPACITY.commandTimeoutMaxMs,
};

/** The contract of every limit on output: a positive integer, clamped to [1 KiB, 1 MiB] where it is used; anything else is refused. */
const outputBytes: JsonSchema = { type: 'integer', minimum: 1 };

const shellArgs = (args: Json): ShellExecArgs => args as unknown as ShellExecArgs;

const shell: CapabilityDescriptor = {
  name: 'shell.exec',
  callers: ['executor', 'product', 'operator'],
  effectClass: 'once',
  runsIn: 'command',
  args: object(
    {
      argv: {
        type: 'array',
        minItems: 1,
        maxItems: SAFETY.argvItems,
        prefixItems: [{ ...text(SAFETY.argvBytes), minLength: 1 }],
        items: text(SAFETY.argvBytes),
      },
      cwd: path,
      env: {
        type: 'object',
        maxProperties: 64,
        additionalProperties: text(SAFETY.argvBytes),
        propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
      },
      stdin: text(SAFETY.fileBytes),
      timeoutMs: { type: 'integer', minimum: 1, maximum: CAPACITY.commandTimeoutMaxMs },
      outputBytes,
      controls: { enum: ['keep', 'strip'] },
      save: object({ path, bytes: outputBytes }, ['path']),
      background: { type: 'boolean' },
      lifetimeMs: { type: 'integer', minimum: 1000, maximum: SAFETY.backgroundLifetimeMs },
    },
    ['argv'],
  ),
  project: (args) => {
    const { argv, cwd, env, stdin, background } = shellArgs(args);
    return {
      argv: argv.slice(0, PROJECTED_ITEMS).map((item) => clipText(item, PROJECTED_CHARACTERS)),
      argv_length: argv.length,
      cwd: cwd ?? '.',
      env: Object.keys(env ?? {}).sort(),
      stdin_bytes: size(stdin ?? ''),
      background: background ?? false,
    };
  },
  summarize: (args) => shellArgs(args).argv.join(' '),
  permitMs: (args) => (shellArgs(args).timeoutMs ?? CAPACITY.commandTimeoutMs) + 10_000,
};

const backgroundArgs = (args: Json): ShellBackgroundArgs => args as unknown as ShellBackgroundArgs;

const background: CapabilityDescriptor = {
  name: 'shell.background',
  callers: ['executor', 'product', 'operator'],
  // Ending what has ended changes nothing more.
  effectClass: 'idempotent',
  runsIn: 'background',
  args: {
    oneOf: [
      object({ op: { const: 'list' } }, ['op']),
      object({ op: { const: 'tail' }, id: text(64), outputBytes }, ['op', 'id']),
      object({ op: { const: 'kill' }, id: text(64) }, ['op', 'id']),
    ],
  },
  project: (args) => {
    const { op, ...rest } = backgroundArgs(args);
    return { op, id: 'id' in rest ? rest.id : '' };
  },
  summarize: (args) => {
    const { op, ...rest } = backgroundArgs(args);
    return 'id' in rest ? `${op} ${rest.id}` : op;
  },
  permitMs: () => 30_000,
};

const filePath = (args: Json): string => (args as unknown as { path: string }).path;

const file = (
  name: 'fs.read' | 'fs.write' | 'fs.list',
  effectClass: EffectClass,
  more: Record<string, JsonSchema>,
  required: readonly string[],
) =>
  ({
    name,
    callers: ['executor', 'product', 'operator'],
    effectClass,
    runsIn: 'files',
    args: object({ path, ...more }, ['path', ...required]),
    project: (args) => {
      const body = (args as unknown as { body?: string }).body;
      return body === undefined ? { path: filePath(args) } : { path: filePath(args), bytes: size(body) };
    },
    summarize: (args) => filePath(args),
    permitMs: () => 30_000,
  }) satisfies CapabilityDescriptor;

const stored = (
  name: 'message.post' | 'thread.read' | 'checkpoint.save',
  effectClass: EffectClass,
  args: JsonSchema,
  summarize: (args: Json) => Record<string, number>,
) =>
  ({
    name,
    callers: name === 'thread.read' ? ['executor', 'product', 'operator'] : ['executor'],
    effectClass,
    runsIn: 'store',
    args,
    project: summarize,
    summarize: (value) => JSON.stringify(summarize(value)),
    permitMs: () => 30_000,
  }) satisfies CapabilityDescriptor;

const body = (args: Json): string => (args as unknown as { body: string }).body;

const checkpoint: CapabilityDescriptor = {
  ...stored(
    'checkpoint.save',
    'idempotent',
    object(
      {
        schema: { type: 'string', pattern: '^[a-z][a-z0-9._-]{0,63}$' },
        version: { type: 'integer', minimum: 1 },
        body: text(SAFETY.checkpointBytes),
      },
      ['schema', 'version', 'body'],
    ),
    (args) => ({ bytes: size(body(args)) }),
  ),
  // The body may differ on a redrive: steering can have come in between, and it is not in the ledger.
  identity: (args) => ({
    schema: (args as unknown as { schema: string }).schema,
    version: (args as unknown as { version: number }).version,
  }),
};

export const DESCRIPTORS: Readonly<Record<CapabilityName, CapabilityDescriptor>> = {
  'model.generate': model,
  'shell.exec': shell,
  'shell.background': background,
  'fs.read': file('fs.read', 'pure', { maxBytes: { type: 'integer', minimum: 1, maximum: SAFETY.fileBytes } }, []),
  'fs.write': file('fs.write', 'idempotent', { body: text(SAFETY.fileBytes), encoding: { enum: ['utf8', 'base64'] } }, ['body']),
  'fs.list': file('fs.list', 'pure', { maxEntries: { type: 'integer', minimum: 1, maximum: 5000 } }, []),
  'message.post': stored('message.post', 'idempotent', object({ body: text(SAFETY.messageBytes) }, ['body']), (args) => ({
    bytes: size(body(args)),
  })),
  'thread.read': stored(
    'thread.read',
    'pure',
    object({ afterSeq: { type: 'integer', minimum: 0 }, limit: { type: 'integer', minimum: 1, maximum: 200 } }, []),
    (args) => ({ ...(args as Record<string, number>) }),
  ),
  'checkpoint.save': checkpoint,
};

export const descriptorOf = (name: string): CapabilityDescriptor | undefined =>
  (CAPABILITIES as readonly string[]).includes(name) ? DESCRIPTORS[name as CapabilityName] : undefined;

/** The file operation that a permitted `fs.*` call stands for. */
export function fileOperation(name: CapabilityName, args: Json): FileOperation {
  const value = args as unknown as { path: string; body: string; encoding?: 'utf8' | 'base64'; maxBytes?: number; maxEntries?: number };
  if (name === 'fs.write') return { op: 'write', path: value.path, body: value.body, encoding: value.encoding ?? 'utf8' };
  if (name === 'fs.read') return { op: 'read', path: value.path, maxBytes: value.maxBytes ?? CAPACITY.outputDefaultBytes };
  return { op: 'list', path: value.path, maxEntries: value.maxEntries ?? 1000 };
}

/**
 * Who makes a deny effective. In the sandboxed placements the guest starts commands: a deny withholds record, credentials and egress, and
 * stops an honest executor; a compromised one is held by the wall only.
 */
export function enforcerOf(descriptor: CapabilityDescriptor, placement: string): Enforcer {
  return descriptor.runsIn === 'command' && placement !== 'host-loop-shell' ? 'executor' : 'kernel';
}
