import type { Json } from '../json.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { RecordedOutcome } from '../ports/store.ts';

/** Of a command's sandbox, as its engine counts; undefined where nothing counts. */
interface LimitCounts {
  readonly oomKills: number | undefined;
  readonly refusedProcesses: number | undefined;
}

type Counting = Pick<SandboxTools, 'oomKills' | 'refusedProcesses'> | undefined;

/** Read when a command was handed over. */
export type CountsBefore = Promise<LimitCounts>;

export async function countLimits(tools: Counting): CountsBefore {
  const none = () => undefined;
  const [oomKills, refusedProcesses] = await Promise.all([tools?.oomKills?.().catch(none), tools?.refusedProcesses?.().catch(none)]);
  return { oomKills, refusedProcesses };
}

/**
 * Says of a command that it ran into a limit of its sandbox, by what the engine has counted there since it was handed over: `oom` when one
 * of its processes was killed for want of memory, `pids` when no further process could be made. The executor's own word is not asked.
 * Commands that run at the same moment in one sandbox share the blame.
 */
export async function toldLimits(raw: RecordedOutcome, before: CountsBefore | undefined, tools: Counting): Promise<RecordedOutcome> {
  if (before === undefined || raw.kind !== 'result') return raw;
  const [was, is] = await Promise.all([before, countLimits(tools)]);
  const rose = (name: keyof LimitCounts) => (is[name] ?? 0) > (was[name] ?? Number.POSITIVE_INFINITY);
  const oom = wasKilled(raw.result) && rose('oomKills');
  const pids = rose('refusedProcesses');
  if (!oom && !pids) return raw;
  const result = raw.result as { readonly [name: string]: Json };
  return { ...raw, result: { ...result, ...(oom && { oom }), ...(pids && { pids }) } };
}

/** By the system itself, or as a shell tells it of its last child. */
function wasKilled(result: Json): boolean {
  const { signal, exitCode, timedOut } = (result ?? {}) as { signal?: unknown; exitCode?: unknown; timedOut?: unknown };
  return timedOut === false && (signal === 'SIGKILL' || exitCode === 128 + 9);
}
