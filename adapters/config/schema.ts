import { z } from 'zod';
import type { CapacityName, LimitName, Retention } from '../../core/config.ts';
import { NAME_PATTERN } from '../../core/ids.ts';
import {
  ACCOUNT_KINDS,
  type AccountKind,
  CAPACITY,
  DIMENSIONS,
  type Dimension,
  RETENTION,
  SAFETY,
  SANDBOX_LIMITS,
} from '../../core/limits.ts';
import { HARNESSES, PLACEMENTS } from '../../core/run/types.ts';

const KiB = 1024;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Lowest and highest value that config may give a capacity. The default of each is in core/limits.ts. */
export const CAPACITY_RANGE: Readonly<Record<CapacityName, readonly [low: number, high: number]>> = {
  outputDefaultBytes: [SAFETY.outputFloorBytes, SAFETY.outputBytes],
  leaseMs: [1 * SECOND, 10 * MINUTE],
  heartbeatMs: [100, 2 * MINUTE],
  reclaims: [0, 20],
  commandTimeoutMs: [1 * SECOND, 6 * HOUR],
  commandTimeoutMaxMs: [1 * SECOND, 6 * HOUR],
  runDeadlineMs: [1 * SECOND, 24 * HOUR],
  cancelGraceMs: [100, 2 * MINUTE],
  concurrentRuns: [1, 256],
  contextMessages: [1, 500],
  sandboxIdleMs: [1 * SECOND, 7 * 24 * HOUR],
  sandboxStartMs: [1 * SECOND, 10 * MINUTE],
  policyPollMs: [50, 1 * MINUTE],
  approvalAnswerMs: [1 * SECOND, 30 * 24 * HOUR],
  approvalUseMs: [1 * SECOND, 24 * HOUR],
};

/** Lowest and highest value that config may give a limit of a sandbox. The default of each is in core/limits.ts. */
export const LIMIT_RANGE: Readonly<Record<LimitName, readonly [low: number, high: number]>> = {
  // Less than this and the guest itself has no room.
  memoryMiB: [128, 1024 * 1024],
  pids: [32, 32_768],
  cpus: [0.05, 1024],
  fileMiB: [1, 1024 * 1024],
  openFiles: [256, 1024 * 1024],
  diskMiB: [16, 1024 * 1024 * 1024],
  diskReserveMiB: [0, 1024 * 1024 * 1024],
};

/** Lowest and highest ceiling that config may give an account. The defaults are in core/limits.ts. */
export const CEILING_RANGE: readonly [low: number, high: number] = [0, Number.MAX_SAFE_INTEGER];
export const CEILING_WINDOW_RANGE: readonly [low: number, high: number] = [1 * SECOND, 31 * 24 * HOUR];

/** Fewest and most days that config may keep what is over. The defaults are in core/limits.ts. */
export const RETENTION_RANGE: readonly [low: number, high: number] = [1, 36_500];

/** Largest configuration file that is read. */
export const CONFIG_FILE_BYTES = 512 * KiB;

const name = z.string().regex(NAME_PATTERN, 'must be a name: lower-case letters, digits, ".", "_" and "-", at most 63');
const path = z
  .string()
  .min(1)
  .max(4096)
  .refine((text) => !text.includes('\0'), 'must not contain a NUL character');
const placement = z.enum(PLACEMENTS);

const days = z.int().min(RETENTION_RANGE[0]).max(RETENTION_RANGE[1]).optional();

function capacityShape() {
  const fields = Object.entries(CAPACITY_RANGE).map(([key, [low, high]]) => [key, z.int().min(low).max(high).optional()] as const);
  return Object.fromEntries(fields) as Record<CapacityName, z.ZodOptional<z.ZodInt>>;
}

function limitsShape() {
  const number = (key: LimitName) => (key === 'cpus' ? z.number() : z.int());
  const fields = (Object.entries(LIMIT_RANGE) as [LimitName, readonly [number, number]][]).map(
    ([key, [low, high]]) => [key, number(key).min(low).max(high).optional()] as const,
  );
  return Object.fromEntries(fields) as Record<LimitName, z.ZodOptional<z.ZodNumber>>;
}

/** What each ceiling counts. */
const COUNTED: Readonly<Record<Dimension, string>> = {
  concurrency: 'Calls at once.',
  processes: 'Commands at once.',
  wallMs: 'Time of commands in one window.',
  outputBytes: 'Output that is kept of commands in one window.',
  egressBytes: 'Bytes to and from the network in one window.',
  tokens: 'Tokens of models in one window.',
  moneyMicros: 'Costs of models in one window, in millionths of the unit in which the gateway tells them.',
};

function ceilingsShape() {
  const [low, high] = CEILING_RANGE;
  const dimensions = Object.fromEntries(DIMENSIONS.map((key) => [key, z.int().min(low).max(high).describe(COUNTED[key]).optional()]));
  const account = z.strictObject(dimensions as Record<Dimension, z.ZodOptional<z.ZodInt>>);
  return Object.fromEntries(ACCOUNT_KINDS.map((kind) => [kind, account.optional()])) as Record<AccountKind, z.ZodOptional<typeof account>>;
}

/**
 * What a configuration file may say. Every key may be left out; an absent key means its default, an empty mapping means the same, and
 * there is no key whose absence widens anything.
 */
export const configFileSchema = z.strictObject({
  profile: z
    .enum(['development', 'production'])
    .describe('`production` seats runs only on a reviewed (placement, engine, wall).')
    .optional(),
  stateDir: path.describe('Where all that a kernel keeps lies: absolute, or relative to the file.').optional(),
  // A name without an engine behind it must not read as one.
  engine: z.enum(['bubblewrap']).describe('What makes sandboxes.').optional(),
  placement: placement.describe('Where loop and tools of a run live.').optional(),
  runsPerUser: z
    .union([z.literal('serialize'), z.strictObject({ parallel: z.int().min(1).max(64) })])
    .describe('Runs of one user at once over all of their threads: one, or `parallel: n`.')
    .optional(),
  harness: z.enum(HARNESSES).describe('The agent program.').optional(),
  model: z
    .strictObject({
      gateway: z.literal('scripted').describe('Who answers for the model.').optional(),
      scenario: path.describe('What the scripted model says: the name of a shipped scenario, or a path relative to the file.').optional(),
    })
    .optional(),
  policy: z
    .strictObject({
      dir: path.describe('The rules, their data and what was compiled of them; relative to the file.').optional(),
      publicKey: path.describe('Ed25519 key (PEM) by which rules and data must be signed; without one they need no signature.').optional(),
      logInput: z
        .enum(['digest', 'redacted'])
        .describe('What is kept of a question beside its decision: its digest alone, or the question with secrets replaced.')
        .optional(),
      opa: z
        .strictObject({
          url: z
            .url({ protocol: /^https?$/ })
            .max(2048)
            .describe('Where `setup --full` fetches OPA for this machine when there is no Go to build it with.'),
          sha256: z
            .string()
            .regex(/^[0-9a-fA-F]{64}$/, 'must be a SHA-256 digest in hexadecimal')
            .describe('What is fetched must have this digest.'),
        })
        .optional(),
    })
    .optional(),
  policies: z
    .strictObject({ dir: path.describe('Rules and data of one’s own, compiled together with those of `policy.dir`.').optional() })
    .optional(),
  capacity: z.strictObject(capacityShape()).optional(),
  /** What one sandbox may use. */
  limits: z.strictObject(limitsShape()).optional(),
  /** What one tenant, user or thread may use; a dimension that is not named keeps its default. */
  ceilings: z
    .strictObject({
      windowMs: z
        .int()
        .min(CEILING_WINDOW_RANGE[0])
        .max(CEILING_WINDOW_RANGE[1])
        .describe('How long a window of the metered ceilings is.')
        .optional(),
      ...ceilingsShape(),
    })
    .optional(),
  /** Days that what is over is kept. */
  retention: z.strictObject({ decisionDays: days, threadDays: days }).optional(),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).describe('The least that `serve` logs.').optional(),
    })
    .optional(),
  api: z
    .strictObject({
      listen: z.string().min(1).max(300).describe('Address and port of the HTTP API.').optional(),
      nonLoopback: z
        .string()
        .min(10, 'must say why, in ten characters or more')
        .max(500)
        .describe('Why the API may listen beyond loopback: the reason; a bare `true` is none.')
        .optional(),
      hosts: z
        .array(z.string().min(1).max(253))
        .max(16)
        .describe('Further names by which clients call the API; requests to any other name are refused.')
        .optional(),
      metrics: z.enum(['operator', 'open']).describe('Who reads `/metrics`: an operator, or on loopback anybody.').optional(),
    })
    .optional(),
  tenants: z
    .record(
      name,
      z.strictObject({
        placement: placement.describe('Of this tenant, over the one of everybody.').optional(),
        users: z
          .record(name, z.strictObject({ placement: placement.describe('Of this user, over the one of the tenant.').optional() }))
          .optional(),
      }),
    )
    .optional(),
});

export type ConfigFile = z.infer<typeof configFileSchema>;

/** Faults between keys that each fit alone. `capacity` is complete: defaults are in it. */
export function capacityFaults(capacity: Readonly<Record<CapacityName, number>>): string[] {
  const faults: string[] = [];
  if (capacity.heartbeatMs * 2 > capacity.leaseMs) {
    faults.push(`capacity.heartbeatMs: must be at most half of capacity.leaseMs (${capacity.leaseMs})`);
  }
  if (capacity.commandTimeoutMs > capacity.commandTimeoutMaxMs) {
    faults.push(`capacity.commandTimeoutMs: must be at most capacity.commandTimeoutMaxMs (${capacity.commandTimeoutMaxMs})`);
  }
  return faults;
}

/** What was spent in the present window is read from the ledger: it must be there. */
export function retentionFaults(retention: Retention, { windowMs }: { readonly windowMs: number }): string[] {
  if (retention.threadDays * 24 * HOUR >= windowMs) return [];
  return [`retention.threadDays: must not be shorter than ceilings.windowMs (${windowMs})`];
}

/** A fresh copy of the default retention. */
export const defaultRetention = (): Record<keyof Retention, number> => ({ ...RETENTION });

/** A fresh copy of the default capacities. */
export const defaultCapacity = (): Record<CapacityName, number> => ({ ...CAPACITY });

/** A fresh copy of the default limits of a sandbox. */
export const defaultLimits = (): Record<LimitName, number> => ({ ...SANDBOX_LIMITS });
