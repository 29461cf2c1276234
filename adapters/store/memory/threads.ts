import { StoreError } from '../../../core/errors.ts';
import type { ThreadStore } from '../../../core/ports/store.ts';
import { isTerminal, type Message, type Run, type Thread } from '../../../core/run/types.ts';
import { messagePosted, runQueued, runSteered } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { append, type Memory } from './state.ts';

export function memoryThreads(memory: Memory): ThreadStore {
  const { state } = memory;
  const find = (tenant: string, id: string) => state.threads.find((thread) => thread.id === id && thread.tenant === tenant);
  return {
    async post(post) {
      requireStorable(post);
      const { tenant, actor, origin, body, placement, harness, nowMs } = post;
      if (!state.users.some((user) => user.tenant === tenant && user.name === actor)) {
        throw new StoreError('not_found', `There is no user ${tenant}/${actor}`);
      }
      const known = post.thread === undefined ? undefined : find(tenant, post.thread);
      if (post.thread !== undefined && known === undefined) throw new StoreError('not_found', `There is no thread ${post.thread}`);
      const thread: Thread = known ?? { id: memory.newId('thread', nowMs), tenant, createdAtMs: nowMs };
      if (known === undefined) state.threads.push(thread);
      state.pruned.delete(thread.id);
      const run = memory.newId('run', nowMs);
      const message = appendMessage(memory, { thread: thread.id, author: 'user', user: actor, run, body, steers: false }, nowMs);
      const queued: Run = {
        id: run,
        tenant,
        thread: thread.id,
        actor,
        origin,
        message: message.id,
        state: 'queued',
        gate: undefined,
        fence: 0,
        reclaims: 0,
        leaseHolder: undefined,
        leaseUntilMs: undefined,
        deadlineMs: undefined,
        placement,
        harness,
        cancelRequested: false,
        createdAtMs: nowMs,
        endedAtMs: undefined,
        failure: undefined,
      };
      state.runs.set(run, queued);
      append(memory, messagePosted(queued, message), nowMs);
      append(memory, runQueued(queued), nowMs);
      return { thread, message, run: queued };
    },
    async steer({ tenant, run: id, actor, body, nowMs }) {
      requireStorable([tenant, id, actor, body]);
      const run = state.runs.get(id);
      if (run === undefined || run.tenant !== tenant || run.actor !== actor) {
        throw new StoreError('not_found', `There is no run ${id} of ${tenant}/${actor}`);
      }
      if (isTerminal(run.state)) throw new StoreError('conflict', `The run has ended (${run.state})`);
      const message = appendMessage(memory, { thread: run.thread, author: 'user', user: actor, run: id, body, steers: true }, nowMs);
      append(memory, runSteered(run, message), nowMs);
      return message;
    },
    async get(tenant, id) {
      return find(tenant, id);
    },
    async list(tenant, limit, actor) {
      const acting = [...state.runs.values()].filter((run) => run.tenant === tenant && run.actor === actor);
      const own = new Set(acting.map(({ thread }) => thread));
      return state.threads
        .filter((thread) => thread.tenant === tenant && (actor === undefined || own.has(thread.id)))
        .reverse()
        .slice(0, limit);
    },
    async messages(thread, { afterSeq = 0, limit }) {
      const all = state.messages.filter((message) => message.thread === thread && message.seq > afterSeq);
      return all.slice(Math.max(0, all.length - limit));
    },
  };
}

export function appendMessage(memory: Memory, message: Omit<Message, 'id' | 'seq' | 'createdAtMs'>, nowMs: number): Message {
  const seq = memory.state.messages.filter(({ thread }) => thread === message.thread).length + 1;
  const appended: Message = { id: memory.newId('message', nowMs), seq, ...message, createdAtMs: nowMs };
  memory.state.messages.push(appended);
  return appended;
}
