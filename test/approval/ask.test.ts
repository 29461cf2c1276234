import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { closePermit } from '../../core/capability/close-call.ts';
import type { CallReply, CallRequest, CallScope } from '../../core/capability/types.ts';
import { SandboxError } from '../../core/errors.ts';
import { sha256Hex } from '../../core/json.ts';
import type { ApprovalPolicyInput, Decision, PolicyInput } from '../../core/policy/types.ts';
import type { FileOperation, FileResult, ToolCommand } from '../../core/ports/placement.ts';
import type { PlacementName } from '../../core/run/types.ts';
import { type CallWorld, callWorld, commandOutcome, decision } from '../support/call-world.ts';

const ASK = decision({ effect: 'ask', reasons: [{ code: 'approval_required', message: 'a person decides' }] });
const SCRIPT = 'echo deploy\n';

interface AskWorld extends CallWorld {
  /** Files of the workspace; a test changes them. */
  readonly files: Map<string, string>;
  /** What policy says of calls from now on, */
  policy: (input: PolicyInput) => Decision;
  /** and of who answers. */
  approver: (input: ApprovalPolicyInput) => Decision;
  /** Makes the call, as the attempt that holds the run now. */
  ask(request: CallRequest): Promise<CallReply>;
  /** Ends the attempt as parked on what it was told, lets a person answer, and begins the next one. */
  answered(to: 'approved' | 'denied', parked: CallReply, note?: string): Promise<void>;
  commands(): readonly ToolCommand[];
  placed(): readonly Extract<FileOperation, { op: 'place' }>[];
}

async function askWorld(options: { placement?: PlacementName; secrets?: readonly string[] } = {}): Promise<AskWorld> {
  const files = new Map([['deploy.sh', SCRIPT]]);
  const file = async (operation: FileOperation): Promise<FileResult> => {
    world.executed.push(operation);
    if (operation.op !== 'read') return { op: 'write', size: 1 };
    const body = files.get(operation.path);
    if (body === undefined) throw new SandboxError('file_not_found', operation.path);
    return {
      op: 'read',
      body: body.slice(0, operation.maxBytes),
      encoding: 'utf8',
      size: body.length,
      truncated: body.length > operation.maxBytes,
    };
  };
  const world: CallWorld = await callWorld({
    ...options,
    tools: { file },
    decide: (input) => (input.kind === 'approval' ? self.approver(input as ApprovalPolicyInput) : self.policy(input)),
  });
  await world.store.users.add({ tenant: 'default', name: 'boss', roles: ['approver'], nowMs: world.clock.now() });
  let scope: CallScope = world.scope;
  const self: AskWorld = {
    ...world,
    files,
    policy: () => ASK,
    approver: ({ approver: { roles } }) => decision({ effect: roles.includes('approver') ? 'allow' : 'deny' }),
    ask: (request) => call(world.deps, scope, request),
    async answered(to, parked, note) {
      if (parked.effect !== 'parked') throw new Error(`not parked: ${JSON.stringify(parked)}`);
      const { gate } = parked;
      await world.store.runs.settle(scope, {
        to: 'parked',
        gate,
        outcome: 'parked',
        event: { type: 'run.parked', data: {} },
        nowMs: world.clock.now(),
      });
      await world.store.approvals.answer({
        approval: gate.ref,
        to,
        by: 'boss',
        decision: 'dec',
        ...(note && { note }),
        nowMs: world.clock.now(),
      });
      scope = await world.nextAttempt();
    },
    commands: () => world.executed.filter((one): one is ToolCommand => 'argv' in (one as object)),
    placed: () => world.executed.filter((one): one is Extract<FileOperation, { op: 'place' }> => (one as { op?: string }).op === 'place'),
  };
  return self;
}

const shell = (argv: readonly string[], step = 0): CallRequest => ({ key: { step, call: 2 }, capability: 'shell.exec', args: { argv } });
const approvals = (world: CallWorld) => world.store.approvals.list({ limit: 9 });
const states = async (world: CallWorld) => (await approvals(world)).map(({ state }) => state);

describe('a call that policy asks about', () => {
  it('parks on a durable ask, and nothing is executed', async () => {
    const world = await askWorld();
    const reply = await world.ask(shell(['git', 'push']));
    const [approval] = await approvals(world);
    expect(reply).toMatchObject({ effect: 'parked', gate: { kind: 'approval', ref: approval?.id } });
    expect(world.live.gate).toEqual(reply.effect === 'parked' && reply.gate);
    expect(approval).toMatchObject({
      ...{ state: 'pending', actor: 'ada', run: world.scope.run, capability: 'shell.exec', effectClass: 'once' },
      ...{ digests: { rules: 'r', data: 'd' }, ceiling: { startedBy: 'kernel', leases: [], hosts: [] }, reasons: ASK.reasons },
    });
    expect(approval?.shown.text).toContain('Command: "git" "push"');
    expect(await world.store.calls.list(world.scope.run)).toMatchObject([{ state: 'prepared', permit: undefined }]);
    expect(await world.store.calls.decisions(world.scope.run)).toMatchObject([{ decision: { effect: 'ask' } }]);
    expect(world.commands()).toEqual([]);
    const { clock } = world;
    expect(approval?.expiresAtMs).toBe(clock.now() + world.deps.capacity.approvalAnswerMs);
  });

  it.each([
    ['as it is', (secret: string) => secret],
    ['encoded', (secret: string) => Buffer.from(secret).toString('base64')],
  ])('a script that holds a live secret is not kept and not shown: %s', async (_, written) => {
    const secret = 'Tq7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKa';
    for (const secrets of [[secret], []]) {
      const world = await askWorld({ secrets });
      world.files.set('deploy.sh', `echo ${written(secret)}\n`);
      const reply = await world.ask(shell(['sh', 'deploy.sh']));
      if (secrets.length > 0) {
        expect(reply).toMatchObject({
          effect: 'denied',
          reasons: [{ code: 'approval_file_unusable', message: expect.stringContaining('live secret') }],
        });
        expect(JSON.stringify([reply, await world.store.calls.list(world.scope.run)])).not.toContain(written(secret));
        expect(await approvals(world)).toEqual([]);
      } else {
        // Control: the same file without its being live is kept.
        expect(reply).toMatchObject({ effect: 'parked', gate: { kind: 'approval' } });
      }
    }
  });

  it('is carried out once when it is approved, and the approval is used up with it', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'done', replayed: false });
    expect(world.commands()).toMatchObject([{ argv: ['git', 'push'] }]);
    expect(await states(world)).toEqual(['consumed']);
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'done', replayed: true });
    expect(world.commands()).toHaveLength(1);
    // Another call, word for word the same, is another question.
    expect(await world.ask(shell(['git', 'push'], 1))).toMatchObject({ effect: 'parked' });
  });

  it('is refused when it is denied, with what the person said, whatever policy says by then', async () => {
    const world = await askWorld();
    await world.answered('denied', await world.ask(shell(['git', 'push'])), 'not today');
    world.policy = () => decision();
    expect(await world.ask(shell(['git', 'push']))).toEqual({
      effect: 'denied',
      reasons: [{ code: 'approval_denied', message: 'A person denied this call: not today' }],
    });
    expect(world.commands()).toEqual([]);
  });

  it('a kill between the answer and the call changes nothing: the next attempt carries it out, once', async () => {
    const world = await askWorld();
    const parked = await world.ask(shell(['git', 'push']));
    await world.answered('approved', parked);
    await world.nextAttempt();
    const scope = world.deps.live.find(world.scope.run)?.scope;
    if (scope === undefined) throw new Error('no seat');
    expect(await call(world.deps, scope, shell(['git', 'push']))).toMatchObject({ effect: 'done' });
    expect(world.commands()).toHaveLength(1);
  });

  it('an attempt that comes back before an answer waits on the same ask', async () => {
    const world = await askWorld();
    const first = await world.ask(shell(['sh', 'deploy.sh']));
    world.files.set('deploy.sh', 'changed');
    const again = await world.ask(shell(['sh', 'deploy.sh']));
    expect(again).toEqual(first);
    expect(await states(world)).toEqual(['pending']);
    expect(await world.store.deliveries.list({ limit: 9 })).toMatchObject([{ kind: 'approval' }]);
  });

  it('an executor that goes on asking instead of waiting is refused: nobody is buried in asks', async () => {
    const world = await askWorld();
    for (let step = 0; step < 16; step += 1) expect((await world.ask(shell(['git', 'push'], step))).effect).toBe('parked');
    expect(await world.ask(shell(['git', 'push'], 16))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_limit' }] });
    expect(await world.ask(shell(['git', 'push'], 3))).toMatchObject({ effect: 'parked' });
    expect(await world.store.approvals.list({ limit: 99 })).toHaveLength(16);
  });

  it('an approval that is lost between look and write is looked for again', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    const scope = world.deps.live.find(world.scope.run)?.scope ?? world.scope;
    const open: typeof world.store.calls.open = async (ref, request) => {
      // Somebody else's write comes in between, once.
      if (request.approval !== undefined) world.clock.advance(world.deps.capacity.approvalUseMs + 1);
      return world.store.calls.open(ref, {
        ...request,
        nowMs: world.clock.now(),
        permit: request.permit && { ...request.permit, deadlineMs: world.clock.now() + 1 },
      } as typeof request);
    };
    const deps = { ...world.deps, store: { ...world.store, calls: { ...world.store.calls, open } } };
    expect(await call(deps, scope, shell(['git', 'push']))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_expired' }] });
    expect(world.commands()).toEqual([]);
  });

  it.each(['fs.write', 'message.post', 'thread.read'] as const)('works for what the kernel does itself: %s', async (capability) => {
    const world = await askWorld();
    const args = { 'fs.write': { path: 'a', body: 'b' }, 'message.post': { body: 'hello' }, 'thread.read': {} }[capability];
    const request: CallRequest = { key: { step: 0, call: 2 }, capability, args };
    await world.answered('approved', await world.ask(request));
    expect(await world.ask(request)).toMatchObject({ effect: 'done', replayed: false });
    expect(await states(world)).toEqual(['consumed']);
    const { messages } = { messages: await world.store.threads.messages(world.scope.thread, { limit: 9 }) };
    expect(messages.filter(({ author }) => author === 'agent')).toHaveLength(capability === 'message.post' ? 1 : 0);
  });
});

describe('what an approval is bound to', () => {
  it('BL-122 other arguments under the approved key are refused; under another key they are another ask', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['transfer', '100'])));
    await expect(world.ask(shell(['transfer', '10000']))).rejects.toMatchObject({ code: 'nondeterministic' });
    expect(await world.ask(shell(['transfer', '10000'], 1))).toMatchObject({ effect: 'parked' });
    expect(world.commands()).toEqual([]);
    expect(await world.ask(shell(['transfer', '100']))).toMatchObject({ effect: 'done' });
  });

  it('BL-122 an agent that says itself that it is approved is no approver', async () => {
    const world = await askWorld();
    const args = { argv: ['transfer', '100'], approved: true };
    await expect(world.ask({ key: { step: 0, call: 2 }, capability: 'shell.exec', args })).rejects.toMatchObject({
      code: 'invalid_arguments',
    });
    const inEnv: CallRequest = {
      key: { step: 0, call: 2 },
      capability: 'shell.exec',
      args: { argv: ['transfer'], env: { APPROVED: 'true' } },
    };
    expect(await world.ask(inEnv)).toMatchObject({ effect: 'parked' });
  });

  it('BL-124 policy is asked again when the call is carried out: its deny goes before any approval', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    world.policy = () => decision({ effect: 'deny', reasons: [{ code: 'program_denied', message: 'no' }] });
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'denied', reasons: [{ code: 'program_denied' }] });
    expect(world.commands()).toEqual([]);
    expect(await states(world)).toEqual(['withdrawn']);
  });

  it.each([
    ['rules', { rules: 'r2', data: 'd' }],
    ['data', { rules: 'r', data: 'd2' }],
  ])('BL-124 other %s than the ones it was asked under: a new ask', async (_, digests) => {
    const world = await askWorld();
    const parked = await world.ask(shell(['git', 'push']));
    await world.answered('approved', parked);
    world.policy = () => ({ ...ASK, digests });
    const again = await world.ask(shell(['git', 'push']));
    expect(again).toMatchObject({ effect: 'parked' });
    expect(again).not.toEqual(parked);
    expect(await states(world)).toEqual(['pending', 'withdrawn']);
    expect(world.commands()).toEqual([]);
  });

  const bossIs = (disabled: boolean) => async (world: AskWorld) => {
    await world.store.users.setDisabled({ tenant: 'default', name: 'boss', disabled, nowMs: world.clock.now() });
  };
  const policySaysOfBoss = (said: Decision) => async (world: AskWorld) => {
    world.approver = () => said;
  };
  it.each([
    ['is disabled', bossIs(true)],
    ['may not approve any more', policySaysOfBoss(decision({ effect: 'deny' }))],
    ['would have to be asked about', policySaysOfBoss(ASK)],
  ])('BL-124 who approved %s when the call is to happen: a new ask', async (_, change) => {
    const world = await askWorld();
    const parked = await world.ask(shell(['sh', 'deploy.sh']));
    await world.answered('approved', parked);
    await change(world);
    const again = await world.ask(shell(['sh', 'deploy.sh']));
    expect(again).toMatchObject({ effect: 'parked' });
    expect(again).not.toEqual(parked);
    expect(await states(world)).toEqual(['pending', 'withdrawn']);
    expect(world.commands()).toEqual([]);
  });

  it('BL-124 who approved may do so still: policy is told their roles of the moment, and its answer is on record', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'done' });
    const asked = world.asked.filter((input) => input.kind === 'approval');
    expect(asked).toMatchObject([{ answer: 'approve', approver: { user: 'boss', roles: ['approver'] } }]);
    const kept = (await world.store.decisions.since(0, 99)).filter(({ kind }) => kind === 'approval');
    expect(kept).toMatchObject([{ run: world.scope.run, decision: { effect: 'allow' } }]);
  });

  it.each([
    [
      'denies by then',
      decision({ effect: 'deny', reasons: [{ code: 'program_denied', message: 'no' }] }),
      { effect: 'denied' },
      ['withdrawn'],
    ],
    ['is another by then', { ...ASK, digests: { rules: 'r2', data: 'd' } }, { effect: 'parked' }, ['pending', 'withdrawn']],
  ])('BL-124 a sandbox that takes its time with approved files is held to the policy of the end: it %s', async (_, later, reply, ends) => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['sh', 'deploy.sh'])));
    const { tools } = world.deps.live.find(world.scope.run)?.seat ?? {};
    const file = tools?.file.bind(tools);
    Object.assign(tools ?? {}, {
      async file(...given: Parameters<NonNullable<typeof file>>) {
        if (given[0].op === 'place') world.policy = () => later;
        return file?.(...given);
      },
    });
    expect(await world.ask(shell(['sh', 'deploy.sh']))).toMatchObject(reply);
    expect(await states(world)).toEqual(ends);
    expect(world.commands()).toEqual([]);
  });

  it('a ceiling that is not the one shown: a new ask', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    world.policy = () => ({ ...ASK, obligations: [{ kind: 'reserve', wallMs: 5 }] });
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'parked' });
    expect(await states(world)).toEqual(['pending', 'withdrawn']);
  });

  it('policy that allows by now needs nobody: the ask is withdrawn', async () => {
    const world = await askWorld();
    const parked = await world.ask(shell(['git', 'push']));
    world.policy = () => decision();
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'done' });
    expect(await states(world)).toEqual(['withdrawn']);
    const ref = parked.effect === 'parked' ? parked.gate.ref : '';
    const answer = world.store.approvals.answer({ approval: ref, to: 'approved', by: 'b', decision: 'd', nowMs: world.clock.now() });
    await expect(answer).rejects.toMatchObject({ code: 'conflict' });
  });

  it('an approval that is not used in time is none, also before anything has swept it', async () => {
    const world = await askWorld();
    await world.answered('approved', await world.ask(shell(['git', 'push'])));
    world.clock.advance(world.deps.capacity.approvalUseMs + 1);
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_expired' }] });
    expect(world.commands()).toEqual([]);
    expect(await states(world)).toEqual(['expired']);
  });

  it('an ask that nobody answered in time is refused, also before anything has swept it', async () => {
    const world = await askWorld();
    await world.ask(shell(['git', 'push']));
    world.clock.advance(world.deps.capacity.approvalAnswerMs + 1);
    expect(await world.ask(shell(['git', 'push']))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_expired' }] });
    expect(await states(world)).toEqual(['expired']);
  });
});

describe('a file that the command runs', () => {
  it.each(['host-loop-shell', 'persistent-per-user'] as const)(
    'is kept as it was asked about, and those bytes run (%s)',
    async (placement) => {
      const world = await askWorld({ placement });
      const parked = await world.ask(shell(['sh', 'deploy.sh', 'prod']));
      const sha256 = sha256Hex(SCRIPT);
      expect((await approvals(world))[0]?.files).toEqual([{ argument: 1, path: 'deploy.sh', sha256, size: SCRIPT.length }]);
      world.files.set('deploy.sh', 'rm -rf everything');
      await world.answered('approved', parked);
      const reply = await world.ask(shell(['sh', 'deploy.sh', 'prod']));
      const argv = ['sh', `/run/outwork-approved/${sha256}/deploy.sh`, 'prod'];
      if (placement === 'host-loop-shell') {
        expect(reply).toMatchObject({ effect: 'done' });
        expect(world.commands()).toMatchObject([{ argv }]);
      } else {
        expect(reply).toMatchObject({ effect: 'permit', permit: { argv } });
        const permit = reply.effect === 'permit' ? reply.permit.id : '';
        const scope = world.deps.live.find(world.scope.run)?.scope ?? world.scope;
        expect(await closePermit(world.deps, scope, { permit, outcome: commandOutcome() })).toMatchObject({ effect: 'done' });
      }
      expect(world.placed()).toEqual([{ op: 'place', sha256, name: 'deploy.sh', body: Buffer.from(SCRIPT).toString('base64') }]);
    },
  );

  it('(control) a command that no approval pins files for runs as it was asked', async () => {
    const world = await askWorld({ placement: 'persistent-per-user' });
    world.policy = () => decision();
    const reply = await world.ask(shell(['sh', 'deploy.sh']));
    expect(reply.effect === 'permit' && Object.hasOwn(reply.permit, 'argv')).toBe(false);
    expect(world.placed()).toEqual([]);
  });

  it('whose kept bytes are gone, or are others, is asked about again', async () => {
    for (const body of [undefined, Buffer.from('other').toString('base64')]) {
      const world = await askWorld();
      await world.answered('approved', await world.ask(shell(['sh', 'deploy.sh'])));
      const broken = { ...world.store.approvals, file: async () => body };
      const deps = { ...world.deps, store: { ...world.store, approvals: broken } };
      const scope = world.deps.live.find(world.scope.run)?.scope ?? world.scope;
      expect(await call(deps, scope, shell(['sh', 'deploy.sh']))).toMatchObject({ effect: 'parked' });
      expect(world.commands()).toEqual([]);
    }
  });

  it.each([
    ['is not there', ['sh', 'missing.sh']],
    ['is too large', ['sh', 'large.sh']],
  ])('that %s: nobody is asked', async (_, argv) => {
    const world = await askWorld();
    world.files.set('large.sh', 'x'.repeat(512 * 1024 + 1));
    expect(await world.ask(shell(argv))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_file_unusable' }] });
    expect(await approvals(world)).toEqual([]);
  });

  it('that cannot be told: nobody is asked', async () => {
    const world = await askWorld();
    expect(await world.ask(shell(['sh', '/tmp/x.sh']))).toMatchObject({ effect: 'denied', reasons: [{ code: 'approval_unclear' }] });
  });

  it('a sandbox that is lost while it is read leaves no row behind: the next attempt asks', async () => {
    const world = await askWorld();
    const lost = { ...world.live.seat.tools, file: () => Promise.reject(new SandboxError('guest_lost', 'gone')) };
    const kept = world.live.seat.tools;
    Object.assign(world.live.seat, { tools: lost });
    await expect(world.ask(shell(['sh', 'deploy.sh']))).rejects.toMatchObject({ code: 'guest_lost' });
    expect(await world.store.calls.list(world.scope.run)).toEqual([]);
    Object.assign(world.live.seat, { tools: kept });
    expect(await world.ask(shell(['sh', 'deploy.sh']))).toMatchObject({ effect: 'parked' });
  });
});
