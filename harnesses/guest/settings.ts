/** What the init tells a starting guest; ids are those inside the sandbox. */
export interface GuestSettings {
  readonly socket: string;
  readonly toolUid: number;
  /** Primary gid of the resident file helper. */
  readonly helperGid: number;
  /** Primary gids of invocations. */
  readonly invocationGids: readonly number[];
  /** A 0700 directory of the executor: FIFOs before they are opened, notes on background commands. */
  readonly privateDir: string;
  /** A directory of the executor that tools may read: files that were approved. */
  readonly approvedDir: string;
  readonly workspace: string;
  readonly home: string;
  /** What HOME is seeded from; it may not be there. */
  readonly homeSeed: string;
  /** PATH of tools, without the directories of HOME. */
  readonly path: string;
}

/** Reads the guest's environment. @throws Error naming the variable */
export function readSettings(env: NodeJS.ProcessEnv): GuestSettings {
  const range = /^(\d+)-(\d+)$/.exec(needed(env, 'OUTWORK_GIDS'));
  const first = Number(range?.[1]);
  const last = Number(range?.[2]);
  if (range === null || first < 1 || last <= first || last - first > 1000)
    throw new Error('OUTWORK_GIDS: not a range of at least two gids');
  const toolUid = Number(needed(env, 'OUTWORK_TOOL_UID'));
  if (!Number.isInteger(toolUid) || toolUid < 1) throw new Error('OUTWORK_TOOL_UID: not a uid other than 0');
  return {
    socket: needed(env, 'OUTWORK_SOCKET'),
    toolUid,
    helperGid: first,
    invocationGids: Array.from({ length: last - first }, (_, i) => first + 1 + i),
    privateDir: needed(env, 'OUTWORK_PRIVATE'),
    approvedDir: env.OUTWORK_APPROVED ?? '/run/outwork-approved',
    workspace: env.OUTWORK_WORKSPACE ?? '/workspace',
    home: env.HOME ?? '/home/agent',
    homeSeed: env.OUTWORK_HOME_SEED ?? '/opt/outwork/home',
    path: env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  };
}

function needed(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value === undefined || value === '') throw new Error(`${name}: not set`);
  return value;
}
