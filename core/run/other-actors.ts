import type { Store } from '../ports/store.ts';
import type { LiveRun } from './live-runs.ts';

/** Messages looked at: more than any context holds. */
const WINDOW = 1000;

/** Users other than the actor whose text, or whose runs' replies, are in the thread; sorted. What an executor may read counts as read. */
export async function otherActorsOf(store: Store, thread: string, actor: string): Promise<readonly string[]> {
  return withActors([], await store.threads.messages(thread, { limit: WINDOW }), actor);
}

/** Adds the users of messages that a run has just read: others may have written since it was seated. */
export function noteActors(run: LiveRun, result: unknown): void {
  const { messages } = result as { messages?: readonly { user: string }[] };
  if (messages !== undefined) run.otherActors = withActors(run.otherActors ?? [], messages, run.scope.user);
}

const withActors = (known: readonly string[], messages: readonly { user: string }[], actor: string): readonly string[] =>
  [...new Set([...known, ...messages.map(({ user }) => user).filter((user) => user !== actor)])].sort();
