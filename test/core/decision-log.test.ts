import { describe, expect, it } from 'vitest';
import type { CallPolicyInput } from '../../core/policy/types.ts';
import { LiveRuns } from '../../core/run/live-runs.ts';
import { decision } from '../support/call-world.ts';
import { type RunWorld, runWorld } from '../support/run-world.ts';

const exited = { kind: 'exited', claim: { kind: 'completed' } } as const;
const post = { key: { step: 0, call: 9 }, capability: 'message.post', args: { body: 'done' } };
const read = (call: number) => ({ key: { step: 0, call }, capability: 'thread.read', args: {} });

const secret = 'sk-live-0123456789abcdef';
const rows = (made: RunWorld) => made.world.store.decisions.since(0, 100);
const asked = (made: RunWorld) => made.world.asked.filter((input): input is CallPolicyInput => input.kind === 'call');

describe('the decision log', () => {
  it('holds a placement’s decision too, joined by id to the event of the seat', async () => {
    const made = await runWorld(async (task, self) => {
      await self.call(task, post);
      return exited;
    });
    const run = await made.execute(await made.claim());
    // Decisions of one millisecond come in the order of their ids, which is none: the test's clock stands still.
    const all = (await rows(made)).toSorted((a, b) => b.kind.localeCompare(a.kind));
    expect(all.map(({ kind, capability, run: of }) => [kind, capability, of])).toEqual([
      ['placement', 'host-loop-shell', run.id],
      ['call', 'message.post', run.id],
    ]);
    const events = await made.world.store.events.read(0, { run: run.id }, 100);
    const joined = events.filter(({ data }) => data.decision !== undefined).map(({ type, data }) => [type, data.decision]);
    expect(joined).toContainEqual(['run.placed', all[0]?.id]);
    expect((await made.world.store.calls.list(run.id))[0]?.decision).toBe(all[1]?.id);
  });

  it('holds a refused placement’s, joined to the event of the failure', async () => {
    const reasons = [{ code: 'not_here', message: 'Not here.' }];
    const made = await runWorld(async () => exited, { decide: () => decision({ effect: 'deny', reasons }) });
    const run = await made.execute(await made.claim());
    expect(run).toMatchObject({ state: 'failed', failure: 'not_here' });
    const [row] = await rows(made);
    expect(row).toMatchObject({ kind: 'placement', decision: { effect: 'deny', reasons }, input: { kind: 'placement' } });
    const failed = (await made.world.store.events.read(0, { run: run.id }, 100)).find(({ type }) => type === 'run.failed');
    expect(failed?.data.decision).toBe(row?.id);
  });

  const shell = { key: { step: 0, call: 1 }, capability: 'shell.exec', args: { argv: ['echo', secret] } };
  const tell = async (logInput?: 'digest' | 'redacted') => {
    const made = await runWorld(
      async (task, self) => {
        await self.call(task, shell);
        return exited;
      },
      { secrets: [secret] },
    );
    if (logInput !== undefined) Object.assign(made.deps, { logInput });
    await made.execute(await made.claim());
    return (await rows(made)).find(({ capability }) => capability === 'shell.exec');
  };

  it('keeps what was asked with live secrets replaced, unless only the digest is wanted', async () => {
    const kept = await tell();
    expect(JSON.stringify(kept)).not.toContain(secret);
    expect(kept?.input).toMatchObject({ kind: 'call', capability: 'shell.exec', args: { argv: ['echo', expect.any(String)] } });
    const bare = await tell('digest');
    expect(bare?.input).toBeUndefined();
    expect(bare?.inputDigest).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('what policy is told of a run', () => {
  it('budgets used and left', async () => {
    const made = await runWorld(async (task, self) => {
      await self.call(task, read(0));
      await self.call(task, read(1));
      return exited;
    });
    const run = await made.claim();
    await made.execute(run);
    const [first, second] = asked(made);
    expect([first?.callsUsed, second?.callsUsed]).toEqual([1, 2]);
    expect((first?.callsLeft ?? 0) - (second?.callsLeft ?? 0)).toBe(1);
    expect(first?.wallMsLeft).toBe(run.deadlineMs - made.world.clock.now());
  });

  it('other users whose text is in the thread, also of messages that come later and are read', async () => {
    const made = await runWorld(async (task, self) => {
      const { store, clock } = self.world;
      const say = (actor: string) =>
        store.threads.post({
          tenant: 'default',
          thread: task.scope.thread,
          actor,
          origin: 'interactive',
          body: 'me too',
          nowMs: clock.now(),
        });
      await self.call(task, read(0));
      await say('bob');
      await self.call(task, read(1));
      await self.call(task, read(2));
      return exited;
    });
    const { store, clock } = made.world;
    for (const name of ['bob', 'eve']) await store.users.add({ tenant: 'default', name, roles: ['user'], nowMs: clock.now() });
    const run = await made.claim();
    await store.threads.post({
      tenant: 'default',
      thread: run.thread,
      actor: 'eve',
      origin: 'interactive',
      body: 'hi',
      nowMs: clock.now(),
    });
    await made.execute(run);
    expect(asked(made).map(({ otherActors }) => otherActors)).toEqual([['eve'], ['eve'], ['bob', 'eve']]);
  });

  it('alone in the thread there is nobody else (control)', async () => {
    const made = await runWorld(async (task, self) => {
      await self.call(task, read(0));
      return exited;
    });
    await made.execute(await made.claim());
    expect(asked(made)[0]).toMatchObject({ otherActors: [], sandboxOrigins: ['operator'] });
  });

  it('origins that a sandbox has served, until it is made anew', () => {
    const live = new LiveRuns();
    const seat = (run: string, sandbox: string, origin: string) => live.add({ scope: { run, sandbox, origin } } as never);
    seat('run_1', 'sbx_1', 'trigger');
    live.remove('run_1');
    seat('run_2', 'sbx_1', 'interactive');
    seat('run_3', 'sbx_2', 'interactive');
    expect(live.originsOf('sbx_1')).toEqual(['interactive', 'trigger']);
    expect(live.originsOf('sbx_2')).toEqual(['interactive']);
    live.forgetSandbox('sbx_1');
    expect(live.originsOf('sbx_1')).toEqual([]);
  });
});
