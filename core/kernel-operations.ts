import { createHash, randomBytes } from 'node:crypto';
import { type ApprovalOperationsDeps, approvalOperations } from './approval/operations.ts';
import { eventOf } from './capability/reply.ts';
import { type CompiledConfig, placementFor } from './config.ts';
import { PrerequisiteError, StoreError, UsageError } from './errors.ts';
import { NAME_PATTERN } from './ids.ts';
import type { ApiCaller, KernelOperations, RunView } from './kernel.ts';
import type { PolicyControl } from './policy/control.ts';
import { policyOperations } from './policy/operations.ts';
import type { PolicyEngine } from './policy/types.ts';
import type { Store } from './ports/store.ts';
import type { LiveRuns } from './run/live-runs.ts';
import { type Ahead, nextStep } from './run/next-step.ts';
import { resolveRun } from './run/resolve.ts';
import { ACTIVE_STATES, isTerminal, type Run } from './run/types.ts';
import type { Clock } from './seams/clock.ts';
import type { SandboxEngine } from './seams/sandbox-engine.ts';

export interface OperationsDeps extends ApprovalOperationsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly policy: Pick<PolicyEngine, 'status'>;
  /** Absent where no policy is loaded; what changes it is then refused. */
  readonly control?: PolicyControl;
  readonly live: LiveRuns;
  /** Runs of one user at work at once; given, a queued run says when it waits for that. */
  readonly runsPerUser?: number;
  /** Of the engine. */
  readonly image?: SandboxEngine['image'] | undefined;
  /** Which placement a run gets. */
  readonly config: Pick<CompiledConfig, 'placement' | 'tenants'>;
  /** There may be a run to claim. */
  readonly wake: () => void;
}

/** Only the digest of a bearer token is kept. */
export const tokenDigest = (token: string): string => createHash('sha256').update(`outwork.bearer\0${token}`).digest('hex');

const TOKEN_PATTERN = /^owt_[A-Za-z0-9_-]{43}$/;

/**
 * Whom a bearer token names. Only its digest is compared, by the store's index: how long a look-up takes tells nothing of a token.
 * What has not the form of a token is not looked up.
 */
export async function authenticate(
  { store, clock }: Pick<OperationsDeps, 'store' | 'clock'>,
  token: string,
): Promise<ApiCaller | undefined> {
  if (!TOKEN_PATTERN.test(token)) return undefined;
  const digest = tokenDigest(token);
  const user = await store.users.findByToken(digest, clock.now());
  return user === undefined ? undefined : { user, token: digest };
}

/** What people and programs ask of a kernel; each is a store operation and a hint to the scheduler. */
export function createOperations(deps: OperationsDeps): KernelOperations {
  const { store, clock } = deps;
  const runOf = async (id: string): Promise<Run> => {
    const run = await store.runs.get(id);
    if (run === undefined) throw new UsageError('not_found', `No run ${id}`);
    return run;
  };
  const userOf = async (tenant: string, name: string) => {
    const user = await store.users.get(tenant, name);
    if (user === undefined || user.disabled)
      throw new UsageError('not_found', `No user ${name} in tenant ${tenant}`, { hint: `outwork user add ${name}` });
    return user;
  };
  return {
    async post(request) {
      if (request.body.trim() === '') throw new UsageError('invalid_argument', 'The message is empty');
      const user = await userOf(request.tenant, request.user);
      const { tenant, body, thread, placement, harness, origin = 'operator' } = request;
      const optional = { ...(thread && { thread }), ...(placement && { placement }), ...(harness && { harness }) };
      const posted = await asUsage(store.threads.post({ tenant, actor: user.name, origin, body, ...optional, nowMs: clock.now() }));
      deps.wake();
      return posted;
    },
    async showRun(id): Promise<RunView> {
      const run = await runOf(id);
      const [attempts, calls, decisions, lastEvent, ahead] = await Promise.all([
        store.runs.attempts(id),
        store.calls.list(id),
        store.calls.decisions(id),
        store.events.last({ run: id }),
        run.state === 'queued' ? whatIsAhead(deps, run) : undefined,
      ]);
      return { run, attempts, calls, decisions, lastEvent, next: nextStep(run, ahead, clock.now()) };
    },
    getRun: runOf,
    async listRuns(filter) {
      const runs = await store.runs.list(filter);
      const seats = await store.runs.lastSeats(runs.map(({ id }) => id));
      return runs.map((run) => {
        const placement = seats.get(run.id);
        return {
          ...run,
          seat: {
            placement: placement ?? placementFor(deps.config, { tenant: run.tenant, user: run.actor, run: run.placement }),
            taken: placement !== undefined,
          },
        };
      });
    },
    async cancelRun(id) {
      const run = await runOf(id);
      if (isTerminal(run.state)) return run;
      const type = run.state === 'running' ? 'run.cancelling' : 'run.cancelled';
      const cancelled = await store.runs.requestCancel(id, eventOf({ ...run, run: id }, type, {}), clock.now());
      const live = deps.live.find(id);
      if (live !== undefined) {
        live.cancelRequested = true;
        live.cancel();
      }
      deps.wake();
      return cancelled;
    },
    async steerRun({ tenant, run, user, body }) {
      await userOf(tenant, user);
      const message = await asUsage(store.threads.steer({ tenant, run, actor: user, body, nowMs: clock.now() }));
      const live = deps.live.find(run);
      if (live !== undefined) live.steeringWaits = true;
      return message;
    },
    async resolveRun(id, as) {
      const run = await asUsage(resolveRun(store, id, as, clock.now()));
      deps.wake();
      return run;
    },
    listThreads: (tenant, limit, actor) => store.threads.list(tenant, limit, actor),
    async showThread(tenant, id) {
      const thread = await store.threads.get(tenant, id);
      if (thread === undefined) throw new UsageError('not_found', `No thread ${id}`);
      const [messages, runs] = await Promise.all([
        store.threads.messages(id, { limit: 1000 }),
        store.runs.list({ thread: id, limit: 1000 }),
      ]);
      return { thread, messages, runs };
    },
    events: (from, filter, limit) => store.events.read(from, filter, limit),
    eventsHead: async () => (await store.events.last())?.cursor ?? 0,
    async eventsChanged(from, waitMs) {
      const enough = new AbortController();
      const stop = clock.after(waitMs, () => enough.abort());
      await store.events.changed(from, enough.signal);
      stop();
    },
    async addUser({ tenant, name, roles }) {
      for (const part of [tenant, name]) {
        if (!NAME_PATTERN.test(part))
          throw new UsageError('invalid_argument', `Not a name: ${part.slice(0, 80)}`, { hint: 'lower-case letters, digits, . _ -' });
      }
      return asUsage(store.users.add({ tenant, name, roles, nowMs: clock.now() }));
    },
    listUsers: (tenant) => store.users.list(tenant),
    async issueToken({ tenant, name, ttlMs }) {
      await userOf(tenant, name);
      const token = `owt_${randomBytes(32).toString('base64url')}`;
      const nowMs = clock.now();
      await store.users.addToken({ tenant, user: name, digest: tokenDigest(token), expiresAtMs: nowMs + ttlMs, nowMs });
      return { token, expiresAtMs: nowMs + ttlMs };
    },
    revokeTokens: async (user) => ({ revoked: await asUsage(store.users.revokeTokens({ ...user, nowMs: clock.now() })) }),
    disableUser: (user) => asUsage(store.users.setDisabled({ ...user, nowMs: clock.now() })),
    async buildImage({ force }) {
      if (deps.image === undefined) throw new PrerequisiteError('engine_unavailable', 'This engine builds no image');
      return deps.image({ force });
    },
    policyStatus: async () => deps.policy.status(),
    ...policyOperations(deps),
    ...approvalOperations(deps),
  };
}

/** What a queued run stands behind: the run that holds its thread, an older one of its thread, or the runs that use up its user's room. */
async function whatIsAhead({ store, runsPerUser }: OperationsDeps, run: Run): Promise<Ahead | undefined> {
  const { tenant, thread, actor } = run;
  const [holder] = await store.runs.list({ thread, states: ACTIVE_STATES, limit: 1 });
  if (holder !== undefined) return { why: 'thread', run: holder };
  const queued = await store.runs.list({ thread, states: ['queued'], limit: 1000 });
  const older = queued.at(-1);
  if (older !== undefined && older.id !== run.id) return { why: 'order', run: older };
  if (runsPerUser === undefined) return undefined;
  const mine = await store.runs.list({ tenant, actor, states: ['running', 'cancelling'], limit: runsPerUser });
  const [newest] = mine;
  return newest !== undefined && mine.length >= runsPerUser ? { why: 'user', run: newest } : undefined;
}

/** What the caller got wrong is a usage error; other store errors pass. */
async function asUsage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StoreError && (error.code === 'not_found' || error.code === 'conflict'))
      throw new UsageError(error.code, error.message, { cause: error });
    if (error instanceof StoreError && error.code === 'text_unstorable')
      throw new UsageError('invalid_argument', error.message, { cause: error });
    throw error;
  }
}
