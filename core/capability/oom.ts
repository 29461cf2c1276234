import type { Json } from '../json.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { RecordedOutcome } from '../ports/store.ts';

/** A count of the engine's, read when a command was handed over; undefined where nothing counts. */
export type OomCount = Promise<number | undefined> | undefined;

export const countOom = (tools: Pick<SandboxTools, 'oomKills'> | undefined): OomCount => tools?.oomKills?.().catch(() => undefined);

/**
 * Says of a command that it ran out of memory: one of its processes was killed, and the engine has counted such an end in its sandbox
 * since it was handed over. The executor's own word is not asked. Commands that are killed at the same moment in one sandbox share the blame.
 */
export async function toldOom(raw: RecordedOutcome, before: OomCount, tools: Pick<SandboxTools, 'oomKills'> | undefined) {
  if (before === undefined || raw.kind !== 'result' || !wasKilled(raw.result)) return raw;
  const [was, is] = await Promise.all([before, countOom(tools)]);
  if (was === undefined || is === undefined || is <= was) return raw;
  return { ...raw, result: { ...(raw.result as { readonly [name: string]: Json }), oom: true } };
}

/** By the system itself, or as a shell tells it of its last child. */
function wasKilled(result: Json): boolean {
  const { signal, exitCode, timedOut } = (result ?? {}) as { signal?: unknown; exitCode?: unknown; timedOut?: unknown };
  return timedOut === false && (signal === 'SIGKILL' || exitCode === 128 + 9);
}
