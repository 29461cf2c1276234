const KiB = 1024;
const MiB = 1024 * KiB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/**
 * Every ceiling of the kernel in one table. `safety` bounds are fixed: each is enforced before allocation, and beyond it the request is
 * refused with the named code. `capacity` bounds are defaults which config may raise.
 */
export const SAFETY = {
  /** Membrane request body (code `body_too_large`). */
  membraneBodyBytes: 1 * MiB,
  /** Body of an operation that carries no content: all but `call`, `call.stream`, `permit.close` and `control.reply`. */
  membraneSmallBodyBytes: 16 * KiB,
  /** JSON nesting of a membrane body (code `body_too_deep`). */
  membraneDepth: 32,
  /** Open connections of one sandbox socket; further ones are closed at once. */
  membraneConnections: 16,
  /** Requests per second of one sandbox socket; the excess is paused before any parse, not answered. */
  membraneRequestsPerSecond: 400,
  /** Burst above that rate. */
  membraneBurst: 200,
  /** Each further so many bytes of a request body draw one more request from the bucket. */
  membraneBytesPerRequest: 32 * KiB,
  /** A request with a failed token draws this many requests from the bucket. */
  failedTokenCost: 10,
  /** Request head (code from the HTTP parser: 431). */
  membraneHeaderBytes: 8 * KiB,
  /** Bytes that wait for a guest on one stream (`control`, `call.stream`); a guest that lets more pile up loses the stream. */
  membraneStreamBytes: 8 * MiB,
  /** Policy input (deny `input_out_of_bounds`). */
  policyInputBytes: 64 * KiB,
  /** Elements of one array of it, and of one of a call's arguments. */
  policyInputElements: 1000,
  /** Its nesting. */
  policyInputDepth: 32,
  /** One decision (deny `policy_timeout`). */
  policyDeadlineMs: 5,
  /** Memory of the compiled rules with their data and one question. */
  policyMemoryBytes: 64 * MiB,
  /** Output of one command, both streams each (obligation `output_limit` may lower it). */
  outputBytes: 1 * MiB,
  /** The least that a limit of output can be. */
  outputFloorBytes: 1 * KiB,
  /** How long a background command may live; it is ended then. */
  backgroundLifetimeMs: 24 * 60 * MINUTE,
  /** Arguments of one command, its program among them. */
  argvItems: 256,
  /** One argument. */
  argvBytes: 128 * KiB,
  /** One file read or write. */
  fileBytes: 512 * KiB,
  /** One checkpoint. */
  checkpointBytes: 768 * KiB,
  /** One message. */
  messageBytes: 256 * KiB,
  /** A file of the workspace that an approved command runs (deny `approval_file_unusable`). */
  approvalFileBytes: 512 * KiB,
  /** Asks of one run that wait or are approved at once (deny `approval_limit`): an executor cannot bury a person in them. */
  approvalsPerRun: 16,
  /** The words of a command that is to be approved, as they are shown (deny `approval_too_long`). */
  approvalCommandCharacters: 16 * 1024,
  /** Calls of one run, denied ones included (code `budget_exhausted`). */
  callsPerRun: 2000,
  /** Body of a request to the HTTP API: one message, every character escaped (code `body_too_large`). */
  apiBodyBytes: 6 * 256 * KiB + 4 * KiB,
  /** JSON nesting of such a body (code `body_too_deep`). */
  apiDepth: 8,
  /** Head of such a request (431). */
  apiHeaderBytes: 16 * KiB,
  /** Open connections of the API; further ones are closed at once. */
  apiConnections: 512,
  /** Requests per second of one bearer token (code `rate_limited`). */
  apiRequestsPerSecond: 20,
  /** How many at once above that rate. */
  apiBurst: 60,
  /** Requests per second without a good token, over all clients (code `rate_limited`). */
  apiRefusedPerSecond: 20,
  /** How many of them at once above that rate. */
  apiRefusedBurst: 100,
  /** Event streams of one token (code `too_many_streams`). */
  apiStreamsPerToken: 4,
  /** Event streams of all tokens (code `too_many_streams`). */
  apiStreams: 128,
  /** Bytes that wait for the reader of one event stream; nothing more is read for it before they are gone. */
  apiStreamBytes: 256 * KiB,
  /** A reader that takes none of what waits for so long is cut off; it can go on from its last cursor. */
  apiStreamStallMs: 30 * SECOND,
  /** An event stream says at least this often that it lives. */
  apiHeartbeatMs: 15 * SECOND,
  /** Unix socket path (the kernel's sun_path is 108). */
  socketPathBytes: 100,
} as const;

export const CAPACITY = {
  /** Default length of a captured output stream. */
  outputDefaultBytes: 64 * KiB,
  /** How long a claim of a run counts without a heartbeat. */
  leaseMs: 30 * SECOND,
  /** From one heartbeat of a lease, and from one sweep, to the next; at most half of `leaseMs`. */
  heartbeatMs: 5 * SECOND,
  /** Claims of one run that ended without its executor exiting, before the run fails. */
  reclaims: 3,
  /** Time of a command that asks for none. */
  commandTimeoutMs: 120 * SECOND,
  /** The most that a command may ask for. */
  commandTimeoutMaxMs: 600 * SECOND,
  /** From claim to the run's hard end. */
  runDeadlineMs: 30 * MINUTE,
  /** How long a cancelled executor has to come to its end. */
  cancelGraceMs: 5 * SECOND,
  /** Runs this kernel executes at once. */
  concurrentRuns: 8,
  /** Messages given to an executor as context. */
  contextMessages: 50,
  /** A sandbox that no run used for so long is stopped. */
  sandboxIdleMs: 30 * MINUTE,
  /** From the start of a sandbox to its guest's first word. */
  sandboxStartMs: 20 * SECOND,
  /** From one look at rules and data on disk to the next. */
  policyPollMs: 500,
  /** From an ask to the last moment of its answer. */
  approvalAnswerMs: 24 * 60 * MINUTE,
  /** From an approval to the last moment of its use. */
  approvalUseMs: 15 * MINUTE,
} as const;

/** What one sandbox may use. Defaults, which config may change (`limits`). What enforces each on this machine is `doctor`'s to say. */
export const SANDBOX_LIMITS = {
  /** Memory of all its processes, page cache and temporary files together, in MiB (a cgroup). Beyond it the system ends a process of it. */
  memoryMiB: 2048,
  /** Processes and threads (a cgroup). Beyond it no process can be made (code `pids`). */
  pids: 512,
  /** Processors' worth of time (a cgroup). */
  cpus: 1,
  /** One file, in MiB (RLIMIT_FSIZE). */
  fileMiB: 4096,
  /** Open descriptors of one process (RLIMIT_NOFILE); never more than this kernel's own hard limit. */
  openFiles: 4096,
  /** Workspace and HOME of one user together, in MiB; measured. Beyond it the user's sandboxes are ended (`disk_full`). */
  diskMiB: 10_240,
  /** Free space that the file system of the state directory keeps, in MiB. Below it no sandbox starts and the largest user's are ended. */
  diskReserveMiB: 1024,
} as const;

/** How long is kept what is over, in days. Defaults, which config may change (`retention`). */
export const RETENTION = {
  /** Decisions of policy, from when they were made; those of runs that go on are kept. */
  decisionDays: 30,
  /** Events, ledger, approvals with their files, and deliveries of a thread, from when its last run ended. */
  threadDays: 90,
} as const;

/** Accounts of a call, from the widest to the narrowest. */
export const ACCOUNT_KINDS = ['tenant', 'user', 'thread'] as const;
export type AccountKind = (typeof ACCOUNT_KINDS)[number];

/** What a ceiling can bound. `concurrency` and `processes` are held while a call runs; the others are metered by window. */
export const DIMENSIONS = ['concurrency', 'processes', 'wallMs', 'outputBytes', 'egressBytes', 'tokens', 'moneyMicros'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export const isMetered = (dimension: Dimension): boolean => dimension !== 'concurrency' && dimension !== 'processes';

/** Ceilings by account; a dimension that is not named has none there. Every account of a kind has the same, known before or not. */
export interface Ceilings extends Readonly<Record<AccountKind, Readonly<Partial<Record<Dimension, number>>>>> {
  readonly windowMs: number;
}

/**
 * Ceilings that apply unless config (`ceilings`) says otherwise (code `budget_exhausted`, naming account and dimension). `concurrency` are
 * calls, `processes` commands at once; metered per `windowMs`: `wallMs` of commands, `outputBytes` kept of them, `egressBytes`, `tokens`
 * of models, and `moneyMicros`, millionths of the unit in which the gateway tells its costs.
 */
export const CEILINGS: Ceilings = {
  windowMs: 60 * MINUTE,
  tenant: { concurrency: 512, processes: 256, wallMs: 64 * 60 * MINUTE, outputBytes: 16 * 1024 * MiB, egressBytes: 64 * 1024 * MiB },
  user: {
    concurrency: 32,
    processes: 16,
    wallMs: 16 * 60 * MINUTE,
    outputBytes: 2 * 1024 * MiB,
    egressBytes: 16 * 1024 * MiB,
    tokens: 50_000_000,
    moneyMicros: 100_000_000,
  },
  thread: { concurrency: 32, processes: 16 },
};
