import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROUTES, type Route, type RouteName } from '../../adapters/api/http/routes.ts';
import type { Role } from '../../core/run/types.ts';
import { type ApiWorld, apiWorld, HOUR } from './api-world.ts';

let world: ApiWorld;
beforeEach(async () => {
  world = await apiWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

const ROLES: readonly Role[] = ['user', 'approver', 'operator', 'policy'];
const ALL = Object.entries(ROUTES) as [RouteName, Route][];

/** A request of the route that is right in all but perhaps who makes it; a stream is asked for a run that is not there, and ends at once. */
function request(name: RouteName, { method, path }: Route) {
  const at = path
    .replace(':run', `run_${'0'.repeat(26)}`)
    .replace(':thread', `thr_${'0'.repeat(26)}`)
    .replace(':approval', `apr_${'0'.repeat(26)}`);
  const bodies: Partial<Record<RouteName, object>> = {
    post: { body: 'hi' },
    steer: { body: 'hi' },
    resolve: { as: 'done' },
    approve: {},
    deny: {},
  };
  return { method, path: name === 'stream' ? `${at}?run=run_${'0'.repeat(26)}` : at, body: bodies[name] };
}

describe('who may do what', () => {
  it('is this table and no other', () => {
    const table = Object.fromEntries(ALL.map(([name, { roles }]) => [name, roles === 'anyone' ? roles : roles.join(' ')]));
    // What an approver may answer is policy's to say; which asks they see is told by their role.
    const everybody = 'user approver operator policy';
    expect(table).toEqual({
      ...{ health: 'anyone', ready: 'anyone', description: 'anyone', metrics: 'operator', policy: 'policy operator' },
      ...{ me: 'user approver operator policy', post: 'user operator', events: 'user operator', stream: 'user operator' },
      ...{ runs: 'user operator', run: 'user operator', cancel: 'user operator', steer: 'user operator', resolve: 'user operator' },
      ...{ threads: 'user operator', thread: 'user operator' },
      ...{ approvals: everybody, approval: everybody, approve: everybody, deny: everybody },
    });
  });

  it.each(ALL)('%s is open to the roles of the table and to nobody else', async (name, route) => {
    const { method, path, body } = request(name, route);
    const ask = async (token?: string) => (await world.call(method, path, { ...(token && { token }), ...(body && { body }) })).status;
    const open = route.roles === 'anyone';
    expect((await ask()) === 401, 'no token').toBe(!open);
    expect((await ask(`owt_${'x'.repeat(43)}`)) === 401, 'an unknown token').toBe(!open);
    for (const role of ROLES) {
      const status = await ask(await world.token(`one-${role}`, [role]));
      const admitted = open || (route.roles as readonly Role[]).includes(role);
      expect([200, 201, 404].includes(status), `${role}: ${status}`).toBe(admitted);
      if (!admitted) expect(status).toBe(403);
    }
    expect((await ask(await world.token('nobody', []))) === 403, 'a user without roles').toBe(!open);
  });
});

describe('a token', () => {
  const me = async (token: string) => (await world.call('GET', '/v1/me', { token })).status;

  it('names its user, until it ends', async () => {
    const token = await world.token('ann');
    expect((await world.call('GET', '/v1/me', { token })).json).toEqual({ tenant: 'acme', name: 'ann', roles: ['user'] });
    world.clock.advance(HOUR - 1);
    expect(await me(token)).toBe(200);
    world.clock.advance(1);
    expect(await me(token)).toBe(401);
  });

  it('ends at once when it is revoked or its user disabled, and says the same for each', async () => {
    const revoked = await world.token('ann');
    const disabled = await world.token('bob');
    expect([await me(revoked), await me(disabled)]).toEqual([200, 200]);
    await world.kernel.revokeTokens({ tenant: 'acme', name: 'ann' });
    await world.kernel.disableUser({ tenant: 'acme', name: 'bob', disabled: true });
    const answers = await Promise.all(
      [revoked, disabled, `owt_${'y'.repeat(43)}`, 'short'].map(async (token) => (await world.call('GET', '/v1/me', { token })).text),
    );
    expect(new Set(answers).size).toBe(1);
    expect(JSON.parse(answers[0] as string)).toMatchObject({ error: { code: 'unauthenticated' } });
    await world.kernel.disableUser({ tenant: 'acme', name: 'bob', disabled: false });
    expect(await me(disabled)).toBe(200);
  });

  it('is kept as a digest only', async () => {
    const token = await world.token('ann');
    const seen = JSON.stringify([await world.store.events.read(0, {}, 100), world.logged]);
    expect(seen).not.toContain(token);
    expect(await world.store.users.findByToken(token, world.clock.now())).toBeUndefined();
  });

  it.each(['Basic', 'Bearer', 'bearer two words'])('in another form is none: %s', async (scheme) => {
    const token = await world.token('ann');
    const { status, headers } = await world.call('GET', '/v1/me', {
      headers: { authorization: scheme === 'Bearer' ? token : `${scheme} ${token}` },
    });
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });
});

describe('a user', () => {
  it('sees and touches own runs and threads only; those of others do not exist, in the words of those that never did', async () => {
    const ann = await world.token('ann');
    const others = [await world.token('bob'), await world.token('ann', ['user'], 'other')];
    const { json } = await world.call('POST', '/v1/messages', { token: ann, body: { body: 'secret plan' } });
    const { run, thread } = json;
    const paths: [string, string, object?][] = [
      ['GET', `/v1/runs/${run.id}`],
      ['POST', `/v1/runs/${run.id}/cancel`],
      ['POST', `/v1/runs/${run.id}/steer`, { body: 'x' }],
      ['POST', `/v1/runs/${run.id}/resolve`, { as: 'abort' }],
      ['GET', `/v1/threads/${thread.id}`],
      ['GET', `/v1/events?run=${run.id}`],
      ['GET', `/v1/events/stream?run=${run.id}`],
      ['POST', '/v1/messages', { body: 'me too', thread: thread.id }],
    ];
    for (const token of others) {
      for (const [method, path, body] of paths) {
        const foreign = await world.call(method, path, { token, ...(body && { body }) });
        expect(foreign.status, path).toBe(404);
        const nowhere = (text: string) => text.replaceAll(/(run|thr)_\w{26}/g, '$1');
        const none = JSON.parse(JSON.stringify(body ?? null).replace(thread.id, `thr_${'0'.repeat(26)}`)) as object | null;
        const missing = await world.call(method, path.replace(/(run|thr)_\w{26}/, `$1_${'0'.repeat(26)}`), {
          token,
          ...(none && { body: none }),
        });
        expect(nowhere(foreign.text), path).toBe(nowhere(missing.text));
      }
      expect((await world.call('GET', '/v1/runs', { token })).json).toEqual({ runs: [] });
      expect((await world.call('GET', `/v1/runs?thread=${thread.id}`, { token })).json).toEqual({ runs: [] });
      expect((await world.call('GET', '/v1/threads', { token })).json).toEqual({ threads: [] });
      const { events } = (await world.call('GET', '/v1/events', { token })).json;
      expect(events).toEqual([]);
    }
    // Control: the owner does all of it, and nothing of it happened before.
    expect((await world.call('GET', `/v1/runs/${run.id}`, { token: ann })).json.run).toMatchObject({
      state: 'queued',
      cancelRequested: false,
    });
    expect((await world.call('GET', `/v1/threads/${thread.id}`, { token: ann })).json.messages).toHaveLength(1);
    expect((await world.call('POST', `/v1/runs/${run.id}/cancel`, { token: ann })).json.state).toBe('cancelled');
  });

  it('of a shared thread sees all messages, and of its runs and events the own', async () => {
    const [ann, bob] = [await world.token('ann'), await world.token('bob')];
    const { thread } = (await world.call('POST', '/v1/messages', { token: ann, body: { body: 'one' } })).json;
    // Shared by an operator: nobody lets themselves in.
    await world.kernel.post({ tenant: 'acme', user: 'bob', body: 'two', thread: thread.id });
    const seen = (await world.call('GET', `/v1/threads/${thread.id}`, { token: bob })).json;
    expect(seen.messages.map(({ body }: { body: string }) => body)).toEqual(['one', 'two']);
    expect(seen.runs.map(({ actor }: { actor: string }) => actor)).toEqual(['bob']);
    expect((await world.call('GET', '/v1/events', { token: bob })).json.events).toHaveLength(2);
    expect((await world.call('POST', '/v1/messages', { token: bob, body: { body: 'three', thread: thread.id } })).status).toBe(201);
  });
});

it('an operator sees every run of every tenant, and steers none but own', async () => {
  const operator = await world.token('root', ['operator'], 'ops');
  const { run, thread } = (await world.call('POST', '/v1/messages', { token: await world.token('ann'), body: { body: 'x' } })).json;
  expect((await world.call('GET', '/v1/runs', { token: operator })).json.runs).toHaveLength(1);
  expect((await world.call('GET', `/v1/threads/${thread.id}`, { token: operator })).json.messages).toHaveLength(1);
  expect((await world.call('GET', '/v1/events', { token: operator })).json.events.length).toBeGreaterThan(3);
  expect((await world.call('POST', `/v1/runs/${run.id}/steer`, { token: operator, body: { body: 'x' } })).status).toBe(404);
  expect((await world.call('POST', `/v1/runs/${run.id}/cancel`, { token: operator })).json.state).toBe('cancelled');
});

it.each([
  ['placement', 'must be one of host-loop-shell, disposable-per-run, persistent-per-user'],
  ['harness', 'must be one of scripted'],
])('a %s that is not built is refused with those that are, and no run is made', async (field, problem) => {
  const token = await world.token('ann');
  const { status, json } = await world.call('POST', '/v1/messages', { token, body: { body: 'hi', [field]: 'moon' } });
  expect([status, json.error]).toEqual([400, { code: 'invalid_argument', message: `body.${field}: ${problem}` }]);
  expect((await world.call('GET', '/v1/runs', { token })).json.runs).toEqual([]);
});

describe('nothing in a request names an actor', () => {
  const withBody = ALL.filter(([, { method }]) => method === 'POST');

  it.each(withBody)('%s refuses user, tenant and actor in its body', async (name, route) => {
    const token = await world.token('root', ['operator']);
    const { method, path, body } = request(name, route);
    for (const field of ['user', 'tenant', 'actor', 'origin', 'roles']) {
      const { status, json } = await world.call(method, path, { token, body: { ...body, [field]: 'ann' } });
      expect([status, json.error.code, json.error.message], field).toEqual([400, 'invalid_argument', `body: unknown field ${field}`]);
    }
  });

  it.each(ALL)('%s refuses them in its query', async (name, route) => {
    const token = await world.token('root', ['operator']);
    const { method, path, body } = request(name, route);
    for (const field of ['user', 'tenant', 'actor']) {
      const { status } = await world.call(method, `${path}${path.includes('?') ? '&' : '?'}${field}=ann`, { token, ...(body && { body }) });
      expect(status, field).toBe(400);
    }
  });

  it('a message is its caller’s, whatever headers say', async () => {
    const token = await world.token('ann');
    const headers = { 'x-user': 'bob', 'x-forwarded-user': 'bob', 'x-tenant': 'other' };
    const { json } = await world.call('POST', '/v1/messages', { token, body: { body: 'x' }, headers });
    expect(json.run).toMatchObject({ tenant: 'acme', actor: 'ann', origin: 'interactive' });
  });
});
