import type { TokenApprovals } from '../../../core/approval/operations.ts';
import { APPROVAL_STATES, type ApprovalState } from '../../../core/approval/types.ts';
import type { ApiCaller, KernelOperations } from '../../../core/kernel.ts';
import { HARNESSES, PLACEMENTS, type PlacementName, type Role, type RunState } from '../../../core/run/types.ts';
import { BODY, CURSOR, id, LIMIT, NOTE, shape } from '../operator-methods.ts';
import {
  ALIVE,
  APPROVAL,
  APPROVAL_VIEW,
  APPROVALS,
  EVENTS,
  ME,
  MESSAGE,
  POLICY,
  POSTED,
  READY,
  RUN,
  RUN_VIEW,
  RUNS,
  STATE,
  THREAD_VIEW,
  THREADS,
} from './answers.ts';
import { seesAll, seesAsks, visibleApproval, visibleEvents, visibleRun, visibleThread } from './ownership.ts';

/** What a handler is given; everything in it has passed the route's schemas. */
export interface RouteCall {
  readonly kernel: KernelOperations & TokenApprovals;
  readonly caller: ApiCaller;
  readonly params: { readonly run?: string; readonly thread?: string; readonly approval?: string };
  readonly query: {
    readonly from?: number;
    readonly limit?: number;
    readonly run?: string;
    readonly thread?: string;
    readonly state?: RunState | ApprovalState;
  };
  readonly body: unknown;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly summary: string;
  /** Roles of which a caller must have one; `anyone` needs no token. */
  readonly roles: readonly Role[] | 'anyone';
  readonly query?: object;
  /** Without one a body must be empty. */
  readonly body?: object;
  readonly status: number;
  /** Schema of the answer; a text describes one that is not JSON. */
  readonly answer: object | { readonly mediaType: string; readonly description: string };
  /** Absent for what the server answers itself: probes, metrics, streams, its own description. */
  readonly handle?: (call: RouteCall) => Promise<unknown>;
}

const EVERYBODY: readonly Role[] = ['user', 'approver', 'operator', 'policy'];
const WORKERS: readonly Role[] = ['user', 'operator'];

const PAGE = 100;
/** Events looked at for one answer: a page of a reader who may see few of many ends here, and says where to go on. */
const LOOKED_AT = 1000;

const runParams = { run: id('run') };
const threadParams = { thread: id('thr') };
/** Schemas of what stands in a path. */
export const PARAMS: Readonly<Record<string, object>> = { ...runParams, ...threadParams, approval: id('apr') };

/** A person answers an ask; who that is comes from the token alone, and policy says whether they may. */
const answerRoute = (answer: 'approve' | 'deny') => ({
  method: 'POST' as const,
  path: `/v1/approvals/:approval/${answer}`,
  roles: EVERYBODY,
  status: 200,
  answer: APPROVAL,
  body: shape({ note: NOTE }, []),
  async handle({ kernel, caller, params, body }: RouteCall) {
    const { id: approval } = await visibleApproval(kernel, caller, params.approval ?? '');
    return kernel.answerApprovalAs(caller, { approval, answer, ...(body as { note?: string }) });
  },
});

/**
 * The whole HTTP API, and the only place that says who may do what. No parameter, query or body names a tenant, a user or an actor: all three
 * come from the caller's token.
 */
export const ROUTES = {
  me: {
    ...{ method: 'GET', path: '/v1/me', roles: EVERYBODY, status: 200, answer: ME },
    summary: 'Whom the token names',
    handle: async ({ caller: { user } }) => ({ tenant: user.tenant, name: user.name, roles: user.roles }),
  },
  post: {
    ...{ method: 'POST', path: '/v1/messages', roles: WORKERS, status: 201, answer: POSTED },
    summary: 'Post a message as the caller; a run is queued for it. Without a thread a new one is made',
    body: shape({ body: BODY, thread: id('thr'), placement: { enum: PLACEMENTS }, harness: { enum: HARNESSES } }, ['body']),
    async handle({ kernel, caller, body }) {
      const { tenant, name } = caller.user;
      const given = body as { body: string; thread?: string; placement?: PlacementName; harness?: string };
      if (given.thread !== undefined) await visibleThread(kernel, caller, given.thread);
      return kernel.post({ ...given, tenant, user: name, origin: 'interactive' });
    },
  },
  runs: {
    ...{ method: 'GET', path: '/v1/runs', roles: WORKERS, status: 200, answer: RUNS },
    summary: 'Runs of the caller, newest first; an operator sees all',
    query: shape({ thread: id('thr'), state: STATE, limit: LIMIT }, []),
    async handle({ kernel, caller, query: { thread, state, limit = PAGE } }) {
      const own = seesAll(caller) ? {} : { tenant: caller.user.tenant, actor: caller.user.name };
      return { runs: await kernel.listRuns({ ...own, ...(thread && { thread }), ...(state && { states: [state as RunState] }), limit }) };
    },
  },
  run: {
    ...{ method: 'GET', path: '/v1/runs/:run', roles: WORKERS, status: 200, answer: RUN_VIEW },
    summary: 'One run: attempts, calls, decisions, and what has to happen next',
    async handle({ kernel, caller, params }) {
      return kernel.showRun((await visibleRun(kernel, caller, params.run ?? '')).id);
    },
  },
  cancel: {
    ...{ method: 'POST', path: '/v1/runs/:run/cancel', roles: WORKERS, status: 200, answer: RUN },
    summary: 'Cancel a run; one that has ended stays as it is',
    async handle({ kernel, caller, params }) {
      return kernel.cancelRun((await visibleRun(kernel, caller, params.run ?? '')).id);
    },
  },
  steer: {
    ...{ method: 'POST', path: '/v1/runs/:run/steer', roles: WORKERS, status: 201, answer: MESSAGE },
    summary: 'Say something to a run that has not ended; only its own actor is heard',
    body: shape({ body: BODY }, ['body']),
    async handle({ kernel, caller, params, body }) {
      const run = await visibleRun(kernel, caller, params.run ?? '');
      const { tenant, name } = caller.user;
      return kernel.steerRun({ tenant, user: name, run: run.id, body: (body as { body: string }).body });
    },
  },
  resolve: {
    ...{ method: 'POST', path: '/v1/runs/:run/resolve', roles: WORKERS, status: 200, answer: RUN },
    summary: 'Say how the unknown call of a parked run ended: it happened, it did not (it runs again), or give the run up',
    body: shape({ as: { enum: ['done', 'not-done', 'abort'] } }, ['as']),
    async handle({ kernel, caller, params, body }) {
      const run = await visibleRun(kernel, caller, params.run ?? '');
      return kernel.resolveRun(run.id, (body as { as: 'done' | 'not-done' | 'abort' }).as);
    },
  },
  approvals: {
    ...{ method: 'GET', path: '/v1/approvals', roles: EVERYBODY, status: 200, answer: APPROVALS },
    summary: 'Asks that act for the caller, newest first; an approver sees all of the tenant, an operator all',
    query: shape({ run: id('run'), state: { enum: APPROVAL_STATES }, limit: LIMIT }, []),
    async handle({ kernel, caller, query: { run, state, limit = PAGE } }) {
      const states = state === undefined ? {} : { states: [state as ApprovalState] };
      return { approvals: await kernel.listApprovals({ ...seesAsks(caller), ...(run && { run }), ...states, limit }) };
    },
  },
  approval: {
    ...{ method: 'GET', path: '/v1/approvals/:approval', roles: EVERYBODY, status: 200, answer: APPROVAL_VIEW },
    summary: 'All that an approver is shown: text, warnings, and what the pinned files hold',
    async handle({ kernel, caller, params }) {
      return kernel.showApproval((await visibleApproval(kernel, caller, params.approval ?? '')).id);
    },
  },
  approve: { ...answerRoute('approve'), summary: 'Let the call happen once, exactly as shown; of several answers the first counts' },
  deny: { ...answerRoute('deny'), summary: 'Refuse the call; its run goes on and is told' },
  threads: {
    ...{ method: 'GET', path: '/v1/threads', roles: WORKERS, status: 200, answer: THREADS },
    summary: 'Threads of the caller’s tenant in which a run acts for the caller, newest first; an operator sees all of the tenant',
    query: shape({ limit: LIMIT }, []),
    async handle({ kernel, caller, query: { limit = PAGE } }) {
      const { tenant, name } = caller.user;
      return { threads: await kernel.listThreads(tenant, limit, seesAll(caller) ? undefined : name) };
    },
  },
  thread: {
    ...{ method: 'GET', path: '/v1/threads/:thread', roles: WORKERS, status: 200, answer: THREAD_VIEW },
    summary: 'Messages of a thread that the caller takes part in, and the caller’s runs in it',
    async handle({ kernel, caller, params: { thread = '' } }) {
      const view = await kernel.showThread(await visibleThread(kernel, caller, thread), thread);
      if (seesAll(caller)) return view;
      return { ...view, runs: view.runs.filter(({ actor }) => actor === caller.user.name) };
    },
  },
  events: {
    ...{ method: 'GET', path: '/v1/events', roles: WORKERS, status: 200, answer: EVENTS },
    summary: 'Events after a cursor: of own runs; an operator sees all',
    query: shape({ from: CURSOR, run: id('run'), limit: LIMIT }, []),
    async handle({ kernel, caller, query: { from = 0, run, limit = PAGE } }) {
      if (run !== undefined) {
        await visibleRun(kernel, caller, run);
        const events = await kernel.events(from, { run }, limit);
        return { events, next: events.at(-1)?.cursor ?? from };
      }
      const wanted = visibleEvents(kernel, caller);
      const events = [];
      let next = from;
      for (const event of await kernel.events(from, {}, LOOKED_AT)) {
        if (events.length >= limit) break;
        next = event.cursor;
        if (await wanted(event)) events.push(event);
      }
      return { events, next };
    },
  },
  stream: {
    ...{ method: 'GET', path: '/v1/events/stream', roles: WORKERS, status: 200 },
    answer: { mediaType: 'text/event-stream', description: 'Server-sent events; `id` is the cursor, `event` the type, `data` the event' },
    summary: 'Events as they come, from a cursor on (`from`, or `Last-Event-ID`), else from now on',
    query: shape({ from: CURSOR, run: id('run') }, []),
  },
  policy: {
    ...{ method: 'GET', path: '/v1/policy', roles: ['policy', 'operator'], status: 200, answer: POLICY },
    summary: 'What rules decide now, since when, and why newer ones were refused',
    handle: ({ kernel }) => kernel.policyStatus(),
  },
  health: { ...{ method: 'GET', path: '/healthz', roles: 'anyone', status: 200, answer: ALIVE }, summary: 'The process lives' },
  ready: {
    ...{ method: 'GET', path: '/readyz', roles: 'anyone', status: 200, answer: READY },
    summary: 'Store, policy and engine can serve a run; 503 when one cannot, or when the kernel is ending',
  },
  metrics: {
    ...{ method: 'GET', path: '/metrics', roles: ['operator'], status: 200 },
    answer: { mediaType: 'text/plain', description: 'Prometheus text' },
    summary: 'Counters and gauges; needs no token when config opens it on loopback',
  },
  description: {
    ...{ method: 'GET', path: '/openapi.json', roles: 'anyone', status: 200, answer: { type: 'object' } },
    summary: 'This description',
  },
} as const satisfies Readonly<Record<string, Route>>;

export type RouteName = keyof typeof ROUTES;
