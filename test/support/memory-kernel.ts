import type { CompiledConfig } from '../../core/config.ts';
import { StoreError, UsageError } from '../../core/errors.ts';
import type { EventType, KernelEvent } from '../../core/events.ts';
import { newId } from '../../core/ids.ts';
import type { Json } from '../../core/json.ts';
import type { Kernel, RunView } from '../../core/kernel.ts';
import type { Gate, Message, Run, RunState, Thread, User } from '../../core/run/types.ts';

/**
 * A kernel for tests of what drives one: rows in arrays, no sandbox, no policy. Once started it ends each run by the text of its message:
 * `fail`, `park` and `hang` do that, anything else completes with `reply: <text>`.
 */
export interface MemoryKernel extends Kernel {
  readonly started: boolean;
  readonly closed: boolean;
  /** The bodies of messages to come are answered with this instead. */
  replyWith: string | undefined;
}

const EMPTY_DIGESTS = { rules: 'r', data: 'd' };

export function createMemoryKernel(config: CompiledConfig): MemoryKernel {
  const users: User[] = [];
  const threads: Thread[] = [];
  const messages: Message[] = [];
  const runs = new Map<string, Run>();
  const log: KernelEvent[] = [];
  const waiting = new Set<() => void>();
  const state = { started: false, closed: false, replyWith: undefined as string | undefined };

  const emit = (type: EventType, run: Run | undefined, data: { [key: string]: Json } = {}) => {
    const scope = run === undefined ? {} : { tenant: run.tenant, thread: run.thread, run: run.id };
    log.push({ type, ...scope, data, cursor: log.length + 1, atMs: Date.now() });
    for (const wake of waiting) wake();
  };
  const change = (run: Run, to: RunState, more: Partial<Run> = {}): Run => {
    const next: Run = { ...run, state: to, ...more };
    runs.set(run.id, next);
    return next;
  };
  const find = (id: string): Run => {
    const run = runs.get(id);
    if (run === undefined) throw new UsageError('not_found', `no run ${id}`);
    return run;
  };
  const append = (run: Run, author: 'user' | 'agent', body: string, steers = false): Message => {
    const seq = messages.filter(({ thread }) => thread === run.thread).length + 1;
    const message = {
      id: newId('message'),
      thread: run.thread,
      seq,
      author,
      user: run.actor,
      run: run.id,
      body,
      steers,
      createdAtMs: Date.now(),
    };
    messages.push(message);
    return message;
  };
  const execute = (id: string) => {
    const queued = runs.get(id);
    if (queued?.state !== 'queued' || !state.started) return;
    const run = change(queued, 'running', { fence: queued.fence + 1, placement: queued.placement ?? config.placement });
    emit('run.claimed', run, { fence: run.fence });
    const body = messages.find(({ id: message }) => message === run.message)?.body ?? '';
    if (body === 'hang') return;
    if (body === 'park' && run.fence === 1) {
      const gate: Gate = { kind: 'unknown', ref: newId('call'), reason: 'the end of a command is not known' };
      emit('run.parked', change(run, 'parked', { gate }), { gate: gate.kind, ref: gate.ref });
    } else if (body === 'fail') {
      emit('run.failed', change(run, 'failed', { failure: 'harness_unknown', endedAtMs: Date.now() }), { code: 'harness_unknown' });
    } else {
      append(run, 'agent', state.replyWith ?? `reply: ${body}`);
      emit('run.completed', change(run, 'completed', { endedAtMs: Date.now(), gate: undefined }));
    }
  };
  const belongs = (event: KernelEvent, filter: { tenant?: string; thread?: string; run?: string }) =>
    (['tenant', 'thread', 'run'] as const).every((key) => filter[key] === undefined || filter[key] === event[key]);

  return {
    config,
    get started() {
      return state.started;
    },
    get closed() {
      return state.closed;
    },
    get replyWith() {
      return state.replyWith;
    },
    set replyWith(text) {
      state.replyWith = text;
    },
    async post({ tenant, user, body, thread: named, placement, harness, origin = 'interactive' }) {
      if (!users.some((row) => row.tenant === tenant && row.name === user)) throw new UsageError('not_found', `no user ${user}`);
      let thread = threads.find(({ id, tenant: owner }) => id === named && owner === tenant);
      if (named !== undefined && thread === undefined) throw new UsageError('not_found', `no thread ${named}`);
      if (thread === undefined) {
        thread = { id: newId('thread'), tenant, createdAtMs: Date.now() };
        threads.push(thread);
      }
      const blank = { leaseHolder: undefined, leaseUntilMs: undefined, deadlineMs: undefined, endedAtMs: undefined, failure: undefined };
      const first: Run = {
        ...blank,
        ...{ id: newId('run'), tenant, thread: thread.id, actor: user, origin, message: '', state: 'queued', gate: undefined },
        ...{ fence: 0, reclaims: 0, placement, harness, cancelRequested: false, createdAtMs: Date.now() },
      };
      const message = append(first, 'user', body);
      const run = change(first, 'queued', { message: message.id });
      emit('message.posted', run);
      emit('run.queued', run);
      setImmediate(() => execute(run.id));
      return { thread, message, run };
    },
    async showRun(id): Promise<RunView> {
      const run = find(id);
      const lastEvent = log.findLast((event) => event.run === id);
      return {
        run,
        attempts: [],
        calls: [],
        decisions: [],
        lastEvent,
        next: run.state === 'parked' ? 'a person resolves the call' : 'nothing',
      };
    },
    getRun: async (id) => find(id),
    async listRuns({ tenant, thread, actor, states, limit }) {
      const rows = [...runs.values()].filter(
        (run) =>
          (tenant ?? run.tenant) === run.tenant &&
          (thread ?? run.thread) === run.thread &&
          (actor ?? run.actor) === run.actor &&
          (states?.includes(run.state) ?? true),
      );
      const seat = (run: Run) => ({ placement: run.placement ?? config.placement, taken: run.fence > 0 });
      return rows.slice(0, limit).map((run) => ({ ...run, seat: seat(run) }));
    },
    async cancelRun(id) {
      const run = find(id);
      if (run.endedAtMs !== undefined) return run;
      const cancelled = change(run, 'cancelled', { cancelRequested: true, endedAtMs: Date.now(), gate: undefined });
      emit('run.cancelled', cancelled);
      return cancelled;
    },
    steerRun: async ({ run, body }) => append(find(run), 'user', body, true),
    async resolveRun(id, as) {
      const run = find(id);
      if (run.state !== 'parked') throw new UsageError('conflict', 'the run is not parked');
      emit('call.resolved', run, { as });
      const next = change(run, as === 'abort' ? 'failed' : 'queued', { gate: undefined });
      setImmediate(() => execute(id));
      return next;
    },
    async listThreads(tenant, limit, actor) {
      const own = new Set([...runs.values()].filter((run) => run.actor === (actor ?? run.actor)).map(({ thread }) => thread));
      return threads.filter((thread) => thread.tenant === tenant && own.has(thread.id)).slice(0, limit);
    },
    async showThread(tenant, id) {
      const thread = threads.find((row) => row.id === id && row.tenant === tenant);
      if (thread === undefined) throw new UsageError('not_found', `no thread ${id}`);
      const own = [...runs.values()].filter((run) => run.thread === id);
      return { thread, messages: messages.filter((message) => message.thread === id), runs: own };
    },
    events: async (from, filter, limit) => log.filter((event) => event.cursor > from && belongs(event, filter)).slice(0, limit),
    eventsHead: async () => log.length,
    async eventsChanged(from, waitMs) {
      if (log.length > from || state.closed) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, waitMs);
      waiting.add(resolve);
      await promise;
      waiting.delete(resolve);
      clearTimeout(timer);
    },
    async addUser({ tenant, name, roles }) {
      if (users.some((row) => row.tenant === tenant && row.name === name)) throw new StoreError('conflict', `user ${name} exists`);
      const user = { tenant, name, roles, disabled: false, slice: users.length, createdAtMs: Date.now() };
      users.push(user);
      emit('user.added', undefined, { name });
      return user;
    },
    listUsers: async (tenant) => users.filter((row) => (tenant ?? row.tenant) === row.tenant),
    async issueToken({ tenant, name, ttlMs }) {
      if (!users.some((row) => row.tenant === tenant && row.name === name)) throw new UsageError('not_found', `no user ${name}`);
      return { token: 'owt_test', expiresAtMs: Date.now() + ttlMs };
    },
    revokeTokens: async () => ({ revoked: 1 }),
    async disableUser({ tenant, name, disabled }) {
      const user = users.find((row) => row.tenant === tenant && row.name === name);
      if (user === undefined) throw new UsageError('not_found', `no user ${name}`);
      const next = { ...user, disabled };
      users[users.indexOf(user)] = next;
      return next;
    },
    applyPolicy: async () => ({ digests: EMPTY_DIGESTS, snapshot: 's', changed: false, flips: [] }),
    rollBackPolicy: async () => ({ digests: EMPTY_DIGESTS, snapshot: 's', changed: true, flips: [] }),
    policySnapshots: async () => [],
    showDecision: async (id) => {
      throw new UsageError('not_found', `no decision ${id}`);
    },
    listDecisions: async () => [],
    listApprovals: async () => [],
    showApproval: async (id) => Promise.reject(new UsageError('not_found', `no approval ${id}`)),
    answerApproval: async ({ approval }) => Promise.reject(new UsageError('not_found', `no approval ${approval}`)),
    buildImage: async () => ({ engine: 'bubblewrap', digest: 'e'.repeat(64), built: false, faults: [], removed: 0 }),
    policyStatus: async () => ({ ready: true, digests: EMPTY_DIGESTS, loadedAtMs: 0, reloadFault: undefined }),
    async start() {
      state.started = true;
      state.closed = false;
      for (const id of runs.keys()) execute(id);
    },
    async close() {
      state.closed = true;
      for (const wake of waiting) wake();
    },
    async [Symbol.asyncDispose]() {
      await this.close();
    },
  };
}
