import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPolicyEngine, type ReloadingPolicyEngine } from '../../adapters/policy/wasm-engine.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import { type Approver, answerApproval, LOCAL_OPERATOR } from '../../core/approval/answer.ts';
import type { PolicyInput } from '../../core/policy/types.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Role } from '../../core/run/types.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { SHIPPED } from '../policy/support/policy-dir.ts';
import { askedApproval } from '../support/asked-approval.ts';
import { decision, ManualClock } from '../support/call-world.ts';

let engine: ReloadingPolicyEngine;
beforeAll(async () => {
  engine = await createPolicyEngine({ dir: SHIPPED, clock: systemClock, pollMs: 60_000, onEvent: () => undefined });
});
afterAll(() => engine.close());

let store: Store;
let clock: ManualClock;
let approval: string;
beforeEach(async () => {
  store = createMemoryStore();
  clock = new ManualClock();
  await store.users.add({ tenant: 'acme', name: 'ann', roles: ['user'], nowMs: clock.now() });
  approval = await askedApproval(store, { tenant: 'acme', user: 'ann', nowMs: clock.now() });
});

const deps = () => ({ store, clock, decide: async (input: PolicyInput) => engine.decide(input) });
const as = (user: string, roles: readonly Role[], tenant: string | undefined = 'acme'): Approver => ({ tenant, user, roles });
const answer = (who: Approver, how: 'approve' | 'deny' = 'approve') => answerApproval(deps(), who, { approval, answer: how });
const state = async () => (await store.approvals.get(approval))?.state;

describe('who may answer, by the shipped rules', () => {
  it.each([
    ['an approver', as('boss', ['approver'])],
    ['the local operator', LOCAL_OPERATOR],
  ])('BL-124 %s may', async (_, who) => {
    expect(await answer(who)).toMatchObject({ state: 'approved', answeredBy: who.user });
  });

  it.each([
    ['a user', as('bob', ['user'])],
    ['somebody without roles', as('bob', [])],
    ['the actor', as('ann', ['user'])],
    ['the actor who is an approver too', as('ann', ['user', 'approver'])],
  ])('BL-124 %s may not approve; the ask stays as it is, and the refusal is on record', async (_, who) => {
    await expect(answer(who)).rejects.toMatchObject({ code: 'approval_refused' });
    expect(await state()).toBe('pending');
    const decided = (await store.decisions.since(0, 99)).filter(({ kind }) => kind === 'approval');
    expect(decided).toMatchObject([{ decision: { effect: 'deny' }, input: { approver: { user: who.user }, answer: 'approve' } }]);
  });

  it('the actor may take an ask of their own back', async () => {
    expect(await answer(as('ann', ['user']), 'deny')).toMatchObject({ state: 'denied', answeredBy: 'ann' });
  });

  it('BL-124 an approver of another tenant finds no such ask', async () => {
    await expect(answer(as('boss', ['approver'], 'other'))).rejects.toMatchObject({ code: 'not_found' });
    expect(await store.decisions.since(0, 99)).toHaveLength(1);
  });
});

describe('an answer', () => {
  it('shows policy who asks, who answers, and what it is bound to', async () => {
    await answer(as('boss', ['approver']));
    const row = await store.approvals.get(approval);
    const made = await store.decisions.get(row?.answerDecision ?? '');
    expect(made).toMatchObject({
      kind: 'approval',
      run: row?.run,
      decision: { effect: 'allow' },
      input: { scope: { user: 'ann' }, actor: { user: 'ann', roles: ['user'] }, approval, fingerprint: row?.fingerprint, args: row?.args },
    });
  });

  it.each(['ask', 'deny'] as const)('that policy meets with %s is none', async (effect) => {
    const work = answerApproval({ ...deps(), decide: async () => decision({ effect }) }, LOCAL_OPERATOR, { approval, answer: 'approve' });
    await expect(work).rejects.toMatchObject({ code: 'approval_refused' });
    expect(await state()).toBe('pending');
  });

  it('BL-120 of approve and deny at once one wins; the loser is told of a conflict', async () => {
    const boss = as('boss', ['approver']);
    const ends = await Promise.allSettled([answer(boss, 'approve'), answer(boss, 'deny'), answer(LOCAL_OPERATOR)]);
    const lost = ends.filter((end) => end.status === 'rejected').map((end) => end.reason.code);
    expect(lost).toEqual(['conflict', 'conflict']);
  });

  it('after its time is refused as such', async () => {
    clock.advance(3_600_001);
    await expect(answer(LOCAL_OPERATOR)).rejects.toMatchObject({ code: 'approval_expired' });
  });

  it('nobody can be called as the local operator is', async () => {
    const { NAME_PATTERN } = await import('../../core/ids.ts');
    expect(LOCAL_OPERATOR.user).not.toMatch(NAME_PATTERN);
  });
});
