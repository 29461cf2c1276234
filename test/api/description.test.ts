import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES, type RouteName } from '../../adapters/api/http/routes.ts';
import { askedApproval } from '../support/asked-approval.ts';
import { type Answer, type ApiWorld, apiWorld } from './api-world.ts';

interface Operation {
  readonly operationId: RouteName;
  readonly security?: readonly object[];
  readonly 'x-roles'?: readonly string[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>>;
}

let world: ApiWorld;
let document: { openapi: string; paths: Record<string, Record<string, Operation>>; components: { securitySchemes: object } };
let operations: Map<RouteName, { readonly path: string; readonly method: string; readonly operation: Operation }>;
let token: string;
let operator: string;
let posted: { run: { id: string }; thread: { id: string } };

beforeAll(async () => {
  world = await apiWorld();
  document = (await world.call('GET', '/openapi.json')).json;
  operations = new Map();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) operations.set(operation.operationId, { path, method, operation });
  }
  token = await world.token('ann');
  operator = await world.token('root', ['operator']);
  posted = (await world.call('POST', '/v1/messages', { token, body: { body: 'hi' } })).json;
});
afterAll(() => world[Symbol.asyncDispose]());

/** Whether an answer is what the description says of its status. */
function faultOf(name: RouteName, { status, json }: Pick<Answer, 'status' | 'json'>): string | undefined {
  const responses: Operation['responses'] = operations.get(name)?.operation.responses ?? {};
  const described = responses[String(status)] ?? responses[`${String(status)[0]}XX`] ?? responses[`${String(status)[0]}xx`];
  const schema = described?.content?.['application/json']?.schema;
  if (schema === undefined) return `no JSON answer ${status} is described`;
  const check = new Ajv({ strict: false }).compile(schema);
  return check(json) ? undefined : JSON.stringify(check.errors);
}

describe('the description', () => {
  it('is OpenAPI 3.1 and has every route, with its method, and no other', () => {
    expect(document.openapi).toBe('3.1.0');
    const described = [...operations].map(([name, { path, method }]) => `${name} ${method} ${path}`).sort();
    const routes = Object.entries(ROUTES).map(
      ([name, { path, method }]) => `${name} ${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`,
    );
    expect(described).toEqual(routes.sort());
  });

  it('says of every route who may, and what a caller gives', () => {
    for (const [name, { operation, path }] of operations) {
      const { roles, method } = ROUTES[name];
      expect(operation.security, name).toEqual(roles === 'anyone' ? [] : [{ bearer: [] }]);
      expect(operation['x-roles'], name).toEqual(roles === 'anyone' ? undefined : roles);
      expect(operation.requestBody === undefined, name).toBe(method === 'GET');
      const inPath = (operation.parameters ?? []).filter((one) => one.in === 'path').map((one) => `{${one.name}}`);
      expect(path.match(/\{\w+\}/g) ?? [], name).toEqual(inPath);
    }
    expect(document.components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } });
  });
});

describe('every answer is as described', () => {
  const id = { run: () => posted.run.id, thread: () => posted.thread.id };
  const good: Readonly<Record<Exclude<RouteName, 'stream' | 'metrics'>, () => Promise<Answer>>> = {
    me: () => world.call('GET', '/v1/me', { token }),
    post: () => world.call('POST', '/v1/messages', { token, body: { body: 'more', thread: id.thread(), placement: 'host-loop-shell' } }),
    runs: () => world.call('GET', '/v1/runs?limit=5&state=queued', { token }),
    run: () => world.call('GET', `/v1/runs/${id.run()}`, { token }),
    steer: () => world.call('POST', `/v1/runs/${id.run()}/steer`, { token, body: { body: 'that way' } }),
    threads: () => world.call('GET', '/v1/threads', { token }),
    thread: () => world.call('GET', `/v1/threads/${id.thread()}`, { token }),
    events: () => world.call('GET', '/v1/events?from=1', { token: operator }),
    policy: () => world.call('GET', '/v1/policy', { token: operator }),
    health: () => world.call('GET', '/healthz'),
    ready: () => world.call('GET', '/readyz'),
    description: () => world.call('GET', '/openapi.json'),
    resolve: async () => {
      const run = await parkedRun(world);
      return world.call('POST', `/v1/runs/${run}/resolve`, { token: operator, body: { as: 'abort' } });
    },
    approvals: async () => {
      await asked(world);
      return world.call('GET', '/v1/approvals', { token: await approver(world) });
    },
    approval: async () => world.call('GET', `/v1/approvals/${await asked(world)}`, { token: await approver(world) }),
    approve: async () =>
      world.call('POST', `/v1/approvals/${await asked(world)}/approve`, { token: await approver(world), body: { note: 'fine' } }),
    deny: async () => world.call('POST', `/v1/approvals/${await asked(world)}/deny`, { token: await approver(world), body: {} }),
    cancel: () => world.call('POST', `/v1/runs/${id.run()}/cancel`, { token }),
  };

  it.each(Object.entries(good))('%s', async (name, ask) => {
    const answer = await ask();
    expect(answer.status, answer.text).toBe(ROUTES[name as RouteName].status);
    expect(faultOf(name as RouteName, answer)).toBeUndefined();
  });

  it('of a run with attempts, calls, decisions and a gate', async () => {
    const run = await parkedRun(world);
    const answer = await world.call('GET', `/v1/runs/${run}`, { token: operator });
    expect(answer.json).toMatchObject({ run: { state: 'parked', gate: { kind: 'unknown' } }, lastEvent: { type: 'run.parked' } });
    for (const rows of [answer.json.attempts, answer.json.calls, answer.json.decisions]) expect(rows).toHaveLength(1);
    expect(faultOf('run', answer)).toBeUndefined();
  });

  it('metrics and streams say their media type', async () => {
    const metrics = await world.call('GET', '/metrics', { token: operator });
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(Object.keys(operations.get('metrics')?.operation.responses['200']?.content ?? {})).toEqual(['text/plain']);
    expect(Object.keys(operations.get('stream')?.operation.responses['200']?.content ?? {})).toEqual(['text/event-stream']);
  });

  it('refusals too, of every status', async () => {
    const nowhere = `/v1/runs/run_${'0'.repeat(26)}`;
    const refusals: [RouteName, number, Answer][] = [
      ['post', 400, await world.call('POST', '/v1/messages', { token, body: '{' })],
      ['me', 401, await world.call('GET', '/v1/me')],
      ['policy', 403, await world.call('GET', '/v1/policy', { token })],
      ['run', 404, await world.call('GET', nowhere, { token })],
      ['resolve', 409, await world.call('POST', `/v1/runs/${id.run()}/resolve`, { token, body: { as: 'done' } })],
      ['post', 413, await world.call('POST', '/v1/messages', { token, body: `"${'x'.repeat(2_000_000)}"` })],
    ];
    for (const [name, status, answer] of refusals) {
      expect(answer.status, answer.text).toBe(status);
      expect(faultOf(name, answer), answer.text).toBeUndefined();
    }
    world.readiness = { store: 'disk full', policy: undefined, engine: 'bwrap is not installed' };
    const unready = await world.call('GET', '/readyz');
    expect([unready.status, unready.json]).toEqual([
      503,
      { ok: false, store: 'disk full', engine: 'bwrap is not installed', draining: false },
    ]);
    expect(faultOf('ready', unready)).toBeUndefined();
  });

  it('control: an answer with a field too many, or one too few, is seen', async () => {
    const { json } = await good.me();
    expect(faultOf('me', { status: 200, json: { ...json, extra: 1 } })).toContain('extra');
    expect(faultOf('me', { status: 200, json: { tenant: 'acme' } })).toContain('required');
    expect(faultOf('me', { status: 302, json })).toContain('302');
  });
});

/** An ask of a user who has no other. */
async function asked({ store, clock, kernel }: ApiWorld): Promise<string> {
  const user = `user-${(await store.users.list()).length}`;
  await kernel.addUser({ tenant: 'acme', name: user, roles: ['user'] });
  return askedApproval(store, { tenant: 'acme', user, nowMs: clock.now() });
}

const approver = (world: ApiWorld): Promise<string> => world.token('boss', ['approver']);

/** A run whose one command has an end that nobody knows. */
async function parkedRun({ store, clock, kernel }: ApiWorld): Promise<string> {
  const name = `user-${(await store.users.list()).length}`;
  await kernel.addUser({ tenant: 'acme', name, roles: ['user'] });
  const { run } = await kernel.post({ tenant: 'acme', user: name, body: 'go' });
  const nowMs = clock.now();
  // Older ones first: each is of another user, and none is ended here.
  for (;;) {
    const claimed = await store.runs.claim({ holder: 'k', nowMs, leaseMs: 30_000, deadlineMs: nowMs + 60_000, perUser: 1 });
    if (claimed === undefined) throw new Error('the run was not claimed');
    if (claimed.id !== run.id) continue;
    const ref = { run: run.id, fence: claimed.fence };
    const fresh = (kind: string, n: number) => `${kind}_${String(n).padStart(26, '0')}`;
    const serial = (await store.events.last())?.cursor ?? 0;
    const opened = await store.calls.open(ref, {
      ...{ key: { step: 0, call: 0 }, capability: 'shell.exec', effectClass: 'once', argsDigest: 'a', summary: 'git push', nowMs },
      permit: { id: fresh('prm', serial), deadlineMs: nowMs + 1000 },
      decision: {
        id: fresh('dec', serial),
        inputDigest: 'i',
        decision: { effect: 'allow', reasons: [], obligations: [], digests: { rules: 'r', data: 'd' }, durationUs: 1 },
      },
      event: { type: 'call.dispatched', tenant: 'acme', thread: run.thread, run: run.id, data: {} },
    });
    if (opened.kind !== 'opened') throw new Error(opened.kind);
    await store.runs.seat(ref, {
      ...{ placement: 'host-loop-shell', engine: 'bubblewrap', sandbox: 'sbx_1', nowMs },
      event: { type: 'run.placed', tenant: 'acme', thread: run.thread, run: run.id, data: {} },
    });
    await store.calls.judge(ref, nowMs);
    await store.runs.settle(ref, {
      ...{ to: 'parked', outcome: 'parked', nowMs, gate: { kind: 'unknown', ref: opened.row.id, reason: 'git push' } },
      event: { type: 'run.parked', tenant: 'acme', thread: run.thread, run: run.id, data: {} },
    });
    return run.id;
  }
}
