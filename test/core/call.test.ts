import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { closePermit } from '../../core/capability/close-call.ts';
import type { CallRequest } from '../../core/capability/types.ts';
import { SandboxError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import type { Obligation } from '../../core/policy/types.ts';
import { CANCELLED } from '../../core/ports/executor.ts';
import { callWorld, commandOutcome, decision } from '../support/call-world.ts';

const shell = (argv: readonly string[], more: Record<string, Json> = {}, step = 0): CallRequest => ({
  key: { step, call: 2 },
  capability: 'shell.exec',
  args: { argv, ...more },
});
const post = (body: string): CallRequest => ({ key: { step: 9, call: 2 }, capability: 'message.post', args: { body } });

describe('the call pipeline in the kernel', () => {
  it('carries an allowed command out, and records decision, row, event', async () => {
    const world = await callWorld();
    const reply = await call(world.deps, world.scope, shell(['ls']));
    expect(reply).toMatchObject({ effect: 'done', replayed: false, result: { exitCode: 0, stdout: 'ran\n' } });
    const [row] = await world.store.calls.list(world.scope.run);
    expect(row).toMatchObject({ state: 'done', effectClass: 'once', capability: 'shell.exec', summary: 'ls' });
    expect(await world.store.calls.decisions(world.scope.run)).toHaveLength(1);
    const types = (await world.store.events.read(0, { run: world.scope.run }, 50)).map((event) => event.type);
    expect(types.slice(-2)).toEqual(['call.dispatched', 'call.completed']);
  });

  it('shows policy who acts, and never more of the arguments than their projection', async () => {
    const world = await callWorld();
    await call(world.deps, world.scope, shell(['tee', 'x'], { stdin: 's'.repeat(1000), env: { TOKEN: 'value' } }));
    expect(world.asked[0]).toMatchObject({
      kind: 'call',
      actor: { user: 'ada' },
      caller: 'executor',
      args: { argv: ['tee', 'x'], stdin_bytes: 1000, env: ['TOKEN'] },
    });
    expect(JSON.stringify(world.asked[0])).not.toContain('value');
  });

  it('a deny executes nothing, is a result with its codes, and leaves row, decision and event', async () => {
    const world = await callWorld({ decide: () => decision({ effect: 'deny', reasons: [{ code: 'program_denied', message: 'no' }] }) });
    const reply = await call(world.deps, world.scope, shell(['rm']));
    expect(reply).toEqual({ effect: 'denied', reasons: [{ code: 'program_denied', message: 'no' }] });
    expect(world.executed).toEqual([]);
    expect(await world.store.calls.list(world.scope.run)).toMatchObject([{ state: 'done', outcome: { kind: 'denied' } }]);
    expect((await world.store.events.read(0, { run: world.scope.run }, 50)).at(-1)).toMatchObject({
      type: 'call.denied',
      data: { codes: ['program_denied'] },
    });
  });

  it('an ask executes nothing: it parks until a person has answered', async () => {
    const world = await callWorld({ decide: () => decision({ effect: 'ask' }) });
    expect(await call(world.deps, world.scope, shell(['ls']))).toMatchObject({ effect: 'parked', gate: { kind: 'approval' } });
    expect(world.executed).toEqual([]);
  });

  it('an obligation the kernel does not know is a deny', async () => {
    const strange = { kind: 'teleport' } as unknown as Obligation;
    const world = await callWorld({ decide: () => decision({ obligations: [strange] }) });
    expect(await call(world.deps, world.scope, shell(['ls']))).toMatchObject({
      effect: 'denied',
      reasons: [{ code: 'policy_unknown_obligation' }],
    });
    expect(world.executed).toEqual([]);
  });

  it.each([
    ['an unknown capability', { key: { step: 0, call: 0 }, capability: 'root.get', args: {} }, 'unknown_capability'],
    ['a capability named like an object member', { key: { step: 0, call: 0 }, capability: 'constructor', args: {} }, 'unknown_capability'],
    ['missing arguments', { key: { step: 0, call: 0 }, capability: 'shell.exec', args: {} }, 'invalid_arguments'],
    ['an unknown argument', shell(['ls'], { actor: 'root' }), 'invalid_arguments'],
    ['a NUL in an argument', shell(['l\0s']), 'invalid_arguments'],
    ['a lone surrogate', shell(['\ud800']), 'invalid_arguments'],
    ['a variable name that no shell takes', shell(['ls'], { env: { 'A-B': '1' } }), 'invalid_arguments'],
    ['an output limit of zero', shell(['ls'], { outputBytes: 0 }), 'invalid_arguments'],
    ['a fractional output limit', shell(['ls'], { outputBytes: 1.5 }), 'invalid_arguments'],
  ] as const)('refuses %s before policy is asked', async (_, request, code) => {
    const world = await callWorld();
    await expect(call(world.deps, world.scope, request)).rejects.toMatchObject({ code });
    expect(world.asked).toEqual([]);
    expect(world.executed).toEqual([]);
  });

  it('refuses a caller that the descriptor does not name', async () => {
    const world = await callWorld();
    await expect(call(world.deps, { ...world.scope, caller: 'product' }, post('hi'))).rejects.toMatchObject({ code: 'caller_not_allowed' });
  });

  it('refuses an attempt that is over, whatever its token said', async () => {
    const world = await callWorld();
    await world.nextAttempt();
    await expect(call(world.deps, world.scope, shell(['ls']))).rejects.toMatchObject({ code: 'stale_fence' });
    expect(world.executed).toEqual([]);
  });

  it('replays a recorded result under the next fence and executes nothing', async () => {
    const world = await callWorld();
    await call(world.deps, world.scope, shell(['ls']));
    const next = await world.nextAttempt();
    await world.store.calls.judge(next, world.clock.now());
    expect(await call(world.deps, next, shell(['ls']))).toMatchObject({ effect: 'done', replayed: true, result: { stdout: 'ran\n' } });
    expect(world.executed).toHaveLength(1);
  });

  it('other arguments under a recorded key are nondeterministic', async () => {
    const world = await callWorld();
    await call(world.deps, world.scope, shell(['ls']));
    await expect(call(world.deps, world.scope, shell(['rm']))).rejects.toMatchObject({ code: 'nondeterministic' });
    expect(world.executed).toHaveLength(1);
  });

  it('a lost sandbox leaves the row dispatched, and a once command becomes unknown at the next fence', async () => {
    const world = await callWorld({ tools: { exec: () => Promise.reject(new SandboxError('guest_lost', 'gone')) } });
    await expect(call(world.deps, world.scope, shell(['make', 'deploy']))).rejects.toMatchObject({ code: 'guest_lost' });
    expect(await world.store.calls.list(world.scope.run)).toMatchObject([{ state: 'dispatched' }]);
    const next = await world.nextAttempt();
    expect(await world.store.calls.judge(next, world.clock.now())).toMatchObject([{ state: 'unknown', summary: 'make deploy' }]);
    expect(await call(world.deps, next, shell(['make', 'deploy']))).toMatchObject({ effect: 'parked', gate: { kind: 'unknown' } });
  });

  it('policy can lower the effect class of a command only: a pure one runs again', async () => {
    const lower: Obligation = { kind: 'effect_class', class: 'pure' };
    let lost = true;
    const world = await callWorld({
      decide: () => decision({ obligations: [lower] }),
      tools: { exec: async () => (lost ? Promise.reject(new SandboxError('guest_lost', 'gone')) : commandOutcome({ stdout: 'again' })) },
    });
    await expect(call(world.deps, world.scope, shell(['git', 'log']))).rejects.toMatchObject({ code: 'guest_lost' });
    const next = await world.nextAttempt();
    expect(await world.store.calls.judge(next, world.clock.now())).toEqual([]);
    lost = false;
    expect(await call(world.deps, next, shell(['git', 'log']))).toMatchObject({
      effect: 'done',
      replayed: false,
      result: { stdout: 'again' },
    });
  });

  it('what a call itself gets wrong is a recorded result, not a lost run', async () => {
    const world = await callWorld({ tools: { file: () => Promise.reject(new SandboxError('path_outside_workspace', 'no')) } });
    const reply = await call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'fs.read', args: { path: '../x' } });
    expect(reply).toMatchObject({ effect: 'done', result: { error: { code: 'path_outside_workspace' } } });
  });

  it('redacts live secrets from result, ledger, summary and reply message', async () => {
    const secret = 'ghp_0123456789abcdef0123456789abcdef0123';
    const world = await callWorld({
      secrets: [secret],
      tools: { exec: async () => commandOutcome({ stdout: `a ${secret} b`, stderr: secret }) },
    });
    await call(world.deps, world.scope, shell(['echo', secret]));
    await call(world.deps, world.scope, post(`here: ${secret}`));
    const everything = JSON.stringify([
      await world.store.calls.list(world.scope.run),
      await world.store.events.read(0, {}, 100),
      await world.store.threads.messages(world.scope.thread, { limit: 10 }),
    ]);
    expect(everything).toContain('[redacted]');
    expect(everything).not.toContain(secret);
  });

  it('(control) without a live secret the same text stays as it is', async () => {
    const world = await callWorld({ tools: { exec: async () => commandOutcome({ stdout: 'ghp_0123' }) } });
    expect(await call(world.deps, world.scope, shell(['echo']))).toMatchObject({ result: { stdout: 'ghp_0123' } });
  });

  it('output holds the limit of the decision, marker included, and NUL never reaches the store', async () => {
    const tighten: Obligation = { kind: 'output_limit', bytes: 2048 };
    const world = await callWorld({
      decide: () => decision({ obligations: [tighten] }),
      tools: { exec: async () => commandOutcome({ stdout: '─'.repeat(40_000), stderr: 'a\0b' }) },
    });
    const reply = await call(world.deps, world.scope, shell(['yes'], { outputBytes: 100_000 }));
    const { stdout, stderr, truncated } = (reply as unknown as { result: { stdout: string; stderr: string; truncated: boolean } }).result;
    expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(2048);
    expect(stdout).not.toContain('\ufffd');
    expect([stderr, truncated]).toEqual(['a\ufffdb', true]);
  });

  it('ceilings name account and dimension, and what ends gives its place back', async () => {
    const gate = Promise.withResolvers<void>();
    const world = await callWorld({ tools: { exec: () => gate.promise.then(() => commandOutcome()) } });
    const calls = [0, 1, 2, 3].map((step) => call(world.deps, world.scope, shell(['sleep'], {}, step)));
    await expect(call(world.deps, world.scope, shell(['sleep'], {}, 4))).rejects.toMatchObject({
      code: 'budget_exhausted',
      message: expect.stringContaining('user ada'),
    });
    gate.resolve();
    await Promise.all(calls);
    expect(await call(world.deps, world.scope, shell(['sleep'], {}, 4))).toMatchObject({ effect: 'done' });
  });

  it('a reply is durable together with its delivery', async () => {
    const world = await callWorld();
    await call(world.deps, world.scope, post('done'));
    expect((await world.store.threads.messages(world.scope.thread, { limit: 10 })).at(-1)).toMatchObject({ author: 'agent', body: 'done' });
    expect(await world.store.deliveries.list({ run: world.scope.run, limit: 5 })).toMatchObject([{ state: 'prepared', body: 'done' }]);
  });
});

describe('the call pipeline for a command that runs in the sandbox', () => {
  const open = async (options: Parameters<typeof callWorld>[0] = {}) => {
    const world = await callWorld({ placement: 'persistent-per-user', ...options });
    const reply = await call(world.deps, world.scope, shell(['make']));
    if (reply.effect !== 'permit') throw new Error(`no permit: ${JSON.stringify(reply)}`);
    return { world, permit: reply.permit };
  };

  it('hands over a permit and no more; its outcome is recorded as claimed', async () => {
    const { world, permit } = await open();
    expect(Object.keys(permit).sort()).toEqual(['deadlineMs', 'id', 'outputBytes', 'timeoutMs']);
    expect(world.executed).toEqual([]);
    const reply = await closePermit(world.deps, world.scope, { permit: permit.id, outcome: commandOutcome({ exitCode: 2 }) });
    expect(reply).toMatchObject({ effect: 'done', result: { exitCode: 2 } });
    expect(await world.store.calls.list(world.scope.run)).toMatchObject([
      { state: 'done', outcome: { kind: 'result', source: 'claimed' } },
    ]);
  });

  it('closes a permit once', async () => {
    const { world, permit } = await open();
    const report = { permit: permit.id, outcome: commandOutcome() };
    const ends = await Promise.allSettled([closePermit(world.deps, world.scope, report), closePermit(world.deps, world.scope, report)]);
    expect(ends.map((end) => end.status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('knows no permit of another run or fence', async () => {
    const { world, permit } = await open();
    const report = { permit: permit.id, outcome: commandOutcome() };
    await expect(closePermit(world.deps, { ...world.scope, run: 'run_other' }, report)).rejects.toMatchObject({ code: 'permit_unknown' });
    await expect(closePermit(world.deps, { ...world.scope, fence: 2 }, report)).rejects.toMatchObject({ code: 'permit_unknown' });
    await expect(closePermit(world.deps, world.scope, report)).resolves.toMatchObject({ effect: 'done' });
  });

  it('an outcome after the deadline is unknown, never success', async () => {
    const { world, permit } = await open();
    world.clock.advance(permit.deadlineMs - world.clock.now() + 1);
    await expect(closePermit(world.deps, world.scope, { permit: permit.id, outcome: commandOutcome() })).rejects.toMatchObject({
      code: 'permit_expired',
    });
    expect(await world.store.calls.list(world.scope.run)).toMatchObject([{ state: 'unknown' }]);
  });

  it('a row is not done while a request of its invocation is open', async () => {
    const { world, permit } = await open({ openRequests: 1 });
    expect(await closePermit(world.deps, world.scope, { permit: permit.id, outcome: commandOutcome() })).toMatchObject({
      effect: 'parked',
    });
  });

  it.each([
    { why: 'kernel closing', recorded: false },
    { why: CANCELLED, recorded: true },
  ])(
    'an outcome that comes after the attempt was stopped ($why) is recorded only of a cancelled one: $recorded',
    async ({ why, recorded }) => {
      const world = await callWorld({ placement: 'persistent-per-user' });
      const opened = await call(world.deps, world.scope, shell(['sleep', '9']));
      if (opened.effect !== 'permit') throw new Error('no permit');
      world.deps.live.add({ ...world.live, signal: AbortSignal.abort(why) });
      const outcome = commandOutcome({ exitCode: null, signal: 'SIGKILL' });
      const closing = closePermit(world.deps, world.scope, { permit: opened.permit.id, outcome });
      if (recorded) await expect(closing).resolves.toMatchObject({ effect: 'done' });
      else await expect(closing).rejects.toMatchObject({ code: 'stale_fence' });
      expect(await world.store.calls.list(world.scope.run)).toMatchObject([{ state: recorded ? 'done' : 'dispatched' }]);
    },
  );

  it.each([
    ['a NUL', { argv: ['printf', 'a\0b'] }],
    ['half a character', { argv: ['printf'], env: { A: '\ud800' } }],
    ['such a key', { argv: ['printf'], env: { 'A\0': '' } }],
  ])('%s in the arguments that a model gives a tool stays in no form: the call is refused', async (_what, args) => {
    const toolCalls = [
      { id: 'a', name: 'shell', args },
      { id: 'b', name: 'shell', args: { argv: ['fine', '\u{fffd}'] } },
    ];
    const world = await callWorld({
      model: { generate: async () => ({ content: '', toolCalls, usage: { inputTokens: 1, outputTokens: 1 } }) },
    });
    const messages = [{ role: 'user', content: 'go' }];
    const reply = await call(world.deps, world.scope, { key: { step: 0, call: 1 }, capability: 'model.generate', args: { messages } });
    if (reply.effect !== 'done') throw new Error(reply.effect);
    const [ill, fine] = (reply.result as unknown as { toolCalls: { args: Json }[] }).toolCalls;
    expect(fine?.args).toEqual({ argv: ['fine', '\u{fffd}'] });
    await expect(
      call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'shell.exec', args: ill?.args ?? null }),
    ).rejects.toMatchObject({ code: 'invalid_arguments', message: 'shell.exec: ill_formed_text' });
    expect(world.executed).toEqual([]);
  });
});
