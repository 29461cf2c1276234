import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { PrerequisiteError, SandboxError } from '../../core/errors.ts';

/** Ids of one owner: enough for the executor, the tools and one group per invocation, on every engine. */
export const SLICE_UIDS = 4;
export const SLICE_GIDS = 64;

/** Ids as a sandbox sees them. The same on every engine, so that a guest and an image need to know one set only. */
export const INSIDE = {
  executorUid: 0,
  executorGid: 0,
  toolUid: 1000,
  /** Group of the workspace and HOME roots; no process has it. */
  toolGid: 1000,
  /** Primary gids of invocations; the first is the resident file helper's. */
  firstInvocationGid: 2000,
  invocationGids: SLICE_GIDS - 2,
} as const;

export interface IdRange {
  readonly start: number;
  readonly count: number;
}

/** The range of subordinate ids that the system gave to the kernel's user. */
export interface SubIds {
  readonly uids: IdRange;
  readonly gids: IdRange;
}

/** One line of an id map, as newuidmap(1) takes it. */
export interface IdMapping {
  readonly inside: number;
  readonly outside: number;
  readonly count: number;
}

/** Host ids of one owner, and how they look inside. No other id exists in the owner's sandboxes. */
export interface Slice {
  readonly index: number;
  readonly executorUid: number;
  readonly executorGid: number;
  readonly toolUid: number;
  readonly toolGid: number;
  readonly uidMap: readonly IdMapping[];
  readonly gidMap: readonly IdMapping[];
}

/** Who the kernel runs as. */
export interface KernelUser {
  readonly uid: number;
  readonly name: string;
}

export function currentUser(): KernelUser {
  const { uid, username } = userInfo();
  return { uid, name: username };
}

/**
 * First usable range of `user` in a subuid(5) or subgid(5) table: at least one slice long and not containing the user's own id.
 * Lines may name the user by name or by number.
 */
export function findRange(table: string, user: KernelUser, atLeast: number): IdRange | undefined {
  for (const line of table.split('\n')) {
    const [who, startText, countText] = line.trim().split(':');
    if (who !== user.name && who !== String(user.uid)) continue;
    const start = Number(startText);
    const count = Number(countText);
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(count) || start <= 0 || count < atLeast) continue;
    if (user.uid >= start && user.uid < start + count) continue;
    return { start, count };
  }
  return undefined;
}

/** First 65,536 ids above every range that the tables name, from 100,000 on: what `usermod` is told to add. */
export function freeRangeStart(tables: readonly string[]): number {
  let next = 100_000;
  for (const line of tables.join('\n').split('\n')) {
    const [, start, count] = line.trim().split(':').map(Number);
    if (Number.isSafeInteger(start) && Number.isSafeInteger(count)) next = Math.max(next, (start ?? 0) + (count ?? 0));
  }
  return next;
}

/** The command, to be run as root, that gives `user` a range of subordinate ids. */
export function addSubIdsCommand(user: KernelUser, tables: readonly string[]): readonly string[] {
  const start = freeRangeStart(tables);
  const range = `${start}-${start + 65_535}`;
  return ['usermod', '--add-subuids', range, '--add-subgids', range, user.name];
}

/**
 * Reads the sub-id range of `user`.
 *
 * @throws PrerequisiteError `sub_ids_missing`; the hint is the command that adds a range
 */
export async function readSubIds(
  user: KernelUser = currentUser(),
  files: { readonly uids: string; readonly gids: string } = { uids: '/etc/subuid', gids: '/etc/subgid' },
): Promise<SubIds> {
  const [uidTable, gidTable] = await Promise.all([readTable(files.uids), readTable(files.gids)]);
  const uids = findRange(uidTable, user, SLICE_UIDS);
  const gids = findRange(gidTable, user, SLICE_GIDS);
  if (uids === undefined || gids === undefined) {
    throw new PrerequisiteError('sub_ids_missing', `user ${user.name} has no range of subordinate ids`, {
      hint: addSubIdsCommand(user, [uidTable, gidTable]).join(' '),
    });
  }
  return { uids, gids };
}

/** How many owners the range serves. */
export const sliceCount = (ids: SubIds): number => Math.floor(Math.min(ids.uids.count / SLICE_UIDS, ids.gids.count / SLICE_GIDS));

/**
 * The slice of one owner: ids from `index × size` on in both ranges, so two owners never share one.
 *
 * @throws SandboxError `slice_exhausted`
 */
export function sliceOf(ids: SubIds, index: number): Slice {
  if (!Number.isSafeInteger(index) || index < 0 || index >= sliceCount(ids)) {
    throw new SandboxError('slice_exhausted', `the sub-id range serves ${sliceCount(ids)} owners; there is no slice ${index}`, {
      hint: 'give the kernel user a larger range in /etc/subuid and /etc/subgid',
    });
  }
  const uid = ids.uids.start + index * SLICE_UIDS;
  const gid = ids.gids.start + index * SLICE_GIDS;
  return {
    index,
    executorUid: uid,
    executorGid: gid,
    toolUid: uid + 1,
    toolGid: gid + 1,
    uidMap: [
      { inside: INSIDE.executorUid, outside: uid, count: 1 },
      { inside: INSIDE.toolUid, outside: uid + 1, count: 1 },
    ],
    gidMap: [
      { inside: INSIDE.executorGid, outside: gid, count: 1 },
      { inside: INSIDE.toolGid, outside: gid + 1, count: 1 },
      { inside: INSIDE.firstInvocationGid, outside: gid + 2, count: INSIDE.invocationGids },
    ],
  };
}

async function readTable(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw cause;
  }
}
