import { afterEach, beforeEach, expect, it } from 'vitest';
import { askedApproval, SCRIPT } from '../support/asked-approval.ts';
import { type ApiWorld, apiWorld } from './api-world.ts';

let world: ApiWorld;
let approval: string;
let boss: string;
beforeEach(async () => {
  world = await apiWorld();
  await world.token('ann');
  boss = await world.token('boss', ['approver']);
  approval = await askedApproval(world.store, { tenant: 'acme', user: 'ann', nowMs: world.clock.now() });
});
afterEach(() => world[Symbol.asyncDispose]());

const answer = (how: 'approve' | 'deny', token: string, body: object = {}) =>
  world.call('POST', `/v1/approvals/${approval}/${how}`, { token, body });
const stateOf = async () => (await world.store.approvals.get(approval))?.state;

it('an approver sees what is asked and what it pins, and lets it happen; the run goes on', async () => {
  const list = await world.call('GET', '/v1/approvals?state=pending', { token: boss });
  expect(list.json.approvals.map(({ id }: { id: string }) => id)).toEqual([approval]);
  const view = await world.call('GET', `/v1/approvals/${approval}`, { token: boss });
  expect(view.json).toMatchObject({ approval: { state: 'pending' }, files: [{ path: 'deploy.sh', text: SCRIPT }] });
  const done = await answer('approve', boss, { note: 'go' });
  expect([done.status, done.json.state, done.json.answeredBy, done.json.note]).toEqual([200, 'approved', 'boss', 'go']);
  expect((await world.store.runs.get(view.json.approval.run))?.state).toBe('queued');
});

it('BL-120 of two answers at once one counts, the other is told 409; a replay later too', async () => {
  const other = await world.token('chief', ['approver']);
  const both = await Promise.all([answer('approve', boss), answer('deny', other)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  const state = await stateOf();
  expect((await answer('approve', boss)).status).toBe(409);
  expect(await stateOf()).toBe(state);
});

it('BL-118 an unknown ask is 404 and one whose time is over 410; neither is an approval', async () => {
  const nowhere = await world.call('POST', `/v1/approvals/apr_${'0'.repeat(26)}/approve`, { token: boss, body: {} });
  expect([nowhere.status, nowhere.json.error.code]).toEqual([404, 'not_found']);
  world.clock.advance(3_599_000);
  boss = await world.token('boss', ['approver']);
  world.clock.advance(1001);
  const late = await answer('approve', boss);
  expect([late.status, late.json.error.code]).toEqual([410, 'approval_expired']);
  expect(await stateOf()).toBe('pending');
});

it('BL-124 who answers is the token’s user: a body that names one is refused, and others may not', async () => {
  for (const field of ['decided_by', 'by', 'approver', 'user', 'tenant', 'approved']) {
    expect((await answer('approve', boss, { [field]: 'boss' })).status, field).toBe(400);
  }
  const own = await world.token('ann');
  expect((await answer('approve', own)).status).toBe(403);
  const stranger = await world.token('bob');
  const elsewhere = await world.token('boss', ['approver'], 'other');
  for (const token of [stranger, elsewhere]) {
    expect((await answer('approve', token)).status).toBe(404);
    expect((await world.call('GET', `/v1/approvals/${approval}`, { token })).status).toBe(404);
    expect((await world.call('GET', '/v1/approvals', { token })).json).toEqual({ approvals: [] });
  }
  expect(await stateOf()).toBe('pending');
  // Control: the same request of an approver counts.
  expect((await answer('approve', boss)).status).toBe(200);
});
