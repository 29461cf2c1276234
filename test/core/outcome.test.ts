import { describe, expect, it } from 'vitest';
import { call } from '../../core/capability/call.ts';
import { closePermit } from '../../core/capability/close-call.ts';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { Obligation } from '../../core/policy/types.ts';
import type { FileResult, SandboxTools } from '../../core/ports/placement.ts';
import type { PlacementName } from '../../core/run/types.ts';
import { type CallWorld, callWorld, commandOutcome, decision } from '../support/call-world.ts';

const SECRET = 'Zq3vN8rT1xK6wB9yL2mP5sD7fG4hJ0cV';
const TOKEN = 'ghp_q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0o';
const HOST: PlacementName = 'host-loop-shell';
const LOCAL: PlacementName = 'persistent-per-user';

const leaks = (exact: 'redact' | 'block', shapes: 'warn' | 'redact' | 'block'): Obligation => ({ kind: 'leaks', exact, shapes });

interface Options {
  readonly placement?: PlacementName;
  readonly obligations?: readonly Obligation[];
  readonly secrets?: readonly string[];
  readonly tools?: Partial<SandboxTools>;
}

const worldOf = ({ placement = HOST, obligations = [], secrets = [SECRET], tools = {} }: Options) =>
  callWorld({ placement, secrets, tools, decide: () => decision({ obligations }) });

/** A command's result through the whole pipeline, where the kernel starts it and where the executor reports it. */
async function commandIn(world: CallWorld, outcome: CommandOutcome, args: Record<string, Json> = {}): Promise<Json> {
  const request = { key: { step: 0, call: 2 }, capability: 'shell.exec', args: { argv: ['ls'], ...args } };
  const first = await call(world.deps, world.scope, request);
  const reply = first.effect === 'permit' ? await closePermit(world.deps, world.scope, { permit: first.permit.id, outcome }) : first;
  if (reply.effect !== 'done') throw new Error(JSON.stringify(reply));
  return reply.result;
}

async function command(options: Options & { outcome: Partial<CommandOutcome>; args?: Record<string, Json> }) {
  const outcome = commandOutcome(options.outcome);
  const world = await worldOf({ ...options, tools: { exec: () => Promise.resolve(outcome), ...options.tools } });
  const result = await commandIn(world, outcome, options.args);
  return { result: result as { [name: string]: Json }, world };
}

/** Everything that is kept or told of a run. */
async function sinks({ store, scope }: CallWorld): Promise<string> {
  const [calls, decisions, events] = await Promise.all([
    store.calls.list(scope.run),
    store.calls.decisions(scope.run),
    store.events.read(0, { run: scope.run }, 100),
  ]);
  return JSON.stringify({ calls, decisions, events });
}

describe.each([HOST, LOCAL])('what a command printed, under %s', (placement) => {
  it('finding 2: a live secret is in no sink, in whichever stream and form it was printed', async () => {
    const forms = [
      SECRET,
      Buffer.from(SECRET).toString('base64'),
      Buffer.from(SECRET).toString('hex'),
      `${SECRET.slice(0, 9)}\x1b[1m${SECRET.slice(9)}`,
    ];
    for (const stdout of forms) {
      const { result, world } = await command({ placement, outcome: { stdout: `out ${stdout}`, stderr: `err ${stdout}`, exitCode: 1 } });
      expect(JSON.stringify(result)).toContain('[redacted]');
      for (const text of [JSON.stringify(result), await sinks(world)]) {
        for (const form of [SECRET.slice(0, 16), SECRET.slice(16), Buffer.from(SECRET).toString('hex').slice(0, 32)])
          expect(text).not.toContain(form);
      }
    }
  });

  it('(control) without a live secret the same text stays', async () => {
    const { result } = await command({ placement, secrets: [], outcome: { stdout: SECRET } });
    expect(result.stdout).toBe(SECRET);
    expect(result).not.toHaveProperty('leaks');
  });

  it('BL-092 torn between the streams, or by the cut in the middle, less than half is left', async () => {
    for (let k = 1; k < SECRET.length; k += 1) {
      const { result } = await command({ placement, outcome: { stdout: SECRET.slice(0, k), stderr: SECRET.slice(k) } });
      const left = `${result.stdout}${result.stderr}`.replaceAll('[redacted]', '');
      expect(left.length).toBeLessThan(SECRET.length / 2 + 1);
      const cut = `a ${SECRET.slice(0, k)}\n[… 500 of 900 bytes left out …]\n${SECRET.slice(-6)} b`;
      const { result: torn } = await command({ placement, outcome: { stdout: cut, truncated: true, stdoutBytes: 900 } });
      const rest = String(torn.stdout)
        .replace(/\n\[….*\]\n/, '')
        .replaceAll('[redacted]', '');
      expect(rest.length).toBeLessThan(8);
    }
  });

  it('what looks like a credential is told of by default, and the event says so without it', async () => {
    const { result, world } = await command({ placement, secrets: [], outcome: { stdout: `token ${TOKEN}` } });
    expect(result).toMatchObject({ stdout: `token ${TOKEN}`, leaks: [{ name: 'github_token', count: 1, action: 'warned' }] });
    const events = await world.store.events.read(0, { run: world.scope.run }, 50);
    const completed = events.find(({ type }) => type === 'call.completed');
    expect(completed?.data.leaks).toEqual([{ name: 'github_token', count: 1, action: 'warned' }]);
    expect(JSON.stringify(events)).not.toContain(TOKEN);
  });

  it('by policy it is replaced, or the whole result is kept back', async () => {
    const redacted = await command({ placement, obligations: [leaks('redact', 'redact')], outcome: { stdout: `token ${TOKEN} end` } });
    expect(redacted.result).toMatchObject({ stdout: 'token [redacted] end', leaks: [{ action: 'redacted' }] });
    const blocked = await command({ placement, obligations: [leaks('redact', 'block')], outcome: { stdout: `token ${TOKEN} end` } });
    expect(blocked.result).toEqual({ error: { code: 'leak_blocked', message: 'The result is kept back. It holds: github_token (1)' } });
    const exact = await command({ placement, obligations: [leaks('block', 'warn')], outcome: { stderr: SECRET } });
    expect(exact.result).toMatchObject({ error: { code: 'leak_blocked' } });
    for (const { world } of [redacted, blocked]) expect(await sinks(world)).not.toContain(TOKEN);
  });

  it('policy cannot ask for less than the floor', async () => {
    const { result } = await command({ placement, obligations: [leaks('redact', 'warn')], outcome: { stdout: SECRET } });
    expect(result.stdout).toBe('[redacted]');
  });

  it('BL-094 control sequences are taken out, and kept for who asks for them', async () => {
    const outcome = { stdout: '\x1b[31mred\x1b[0m\x1b]52;c;eA==\x07 \u202eabc', stderr: 'a\rb\x07' };
    const { result } = await command({ placement, outcome });
    expect(result).toMatchObject({ stdout: 'red abc', stderr: 'ab' });
    const kept = await command({ placement, outcome, args: { controls: 'keep' } });
    expect(kept.result).toMatchObject({ stdout: outcome.stdout, stderr: outcome.stderr });
    const secret = await command({
      placement,
      outcome: { stdout: `\x1b[31m${SECRET.slice(0, 4)}\x1b[0m${SECRET.slice(4)}` },
      args: { controls: 'keep' },
    });
    expect(String(secret.result.stdout)).toBe('\x1b[31m[redacted]');
  });

  it.each([
    [1, 1024],
    [1023, 1024],
    [1024, 1024],
    [4096, 4096],
    [1_048_576, 1_048_576],
    [1_048_577, 1_048_576],
  ])('finding 6, 7, 8: a limit of %i holds both streams to %i bytes, marker included', async (outputBytes, limit) => {
    const text = 'x'.repeat(limit + 10);
    const { result } = await command({
      placement,
      outcome: { stdout: text, stderr: text, stdoutBytes: text.length },
      args: { outputBytes },
    });
    expect(Buffer.byteLength(String(result.stdout))).toBeLessThanOrEqual(limit);
    expect(Buffer.byteLength(String(result.stderr))).toBeLessThanOrEqual(limit);
    expect(result.stdout).toContain(`of ${text.length} bytes left out`);
    expect(result.truncated).toBe(true);
  });

  it.each([0, -1, 1.5, '4096', null, true])('finding 6: %j is no limit and is refused', async (outputBytes) => {
    await expect(command({ placement, outcome: {}, args: { outputBytes } })).rejects.toMatchObject({ code: 'invalid_arguments' });
    await expect(command({ placement, outcome: {}, args: { save: { path: 'x', bytes: outputBytes } } })).rejects.toMatchObject({
      code: 'invalid_arguments',
    });
  });

  it('out of memory is told by the engine’s count, and by nothing else', async () => {
    const killed = { exitCode: null, signal: 'SIGKILL' };
    const counts = (...values: (number | undefined)[]) => ({ oomKills: () => Promise.resolve(values.shift()) });
    const told = async (outcome: Partial<CommandOutcome>, tools: Partial<SandboxTools>) =>
      (await command({ placement, outcome, tools })).result;
    expect(await told(killed, counts(3, 4))).toMatchObject({ signal: 'SIGKILL', exitCode: null, oom: true });
    expect(await told({ exitCode: 137 }, counts(0, 1))).toMatchObject({ oom: true });
    for (const result of [
      await told(killed, counts(4, 4)),
      await told(killed, {}),
      await told(killed, counts(undefined, undefined)),
      await told({ exitCode: 0 }, counts(0, 1)),
      await told({ ...killed, timedOut: true }, counts(0, 1)),
    ])
      expect(result).not.toHaveProperty('oom');
  });

  it('BL-083 want of processes is told by the engine’s count, however the command took it', async () => {
    const counts = (...values: (number | undefined)[]) => ({ refusedProcesses: () => Promise.resolve(values.shift()) });
    const told = async (outcome: Partial<CommandOutcome>, tools: Partial<SandboxTools>) =>
      (await command({ placement, outcome, tools })).result;
    expect(await told({ exitCode: 2, stderr: 'sh: 1: Cannot fork\n' }, counts(3, 4))).toMatchObject({ exitCode: 2, pids: true });
    expect(await told({ exitCode: 0 }, counts(0, 90))).toMatchObject({ exitCode: 0, pids: true });
    for (const tools of [counts(4, 4), counts(undefined, 7), counts(7, undefined), {}])
      expect(await told({ exitCode: 2, stderr: 'sh: 1: Cannot fork\n' }, tools)).not.toHaveProperty('pids');
  });
});

describe('files are not corrupted', () => {
  const file = async (read: FileResult, options: Options = {}) => {
    const world = await worldOf({ ...options, tools: { file: () => Promise.resolve(read) } });
    const reply = await call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'fs.read', args: { path: 'a' } });
    return { result: reply.effect === 'done' ? (reply.result as { [name: string]: Json }) : {}, world };
  };
  const text = (body: string): FileResult => ({ op: 'read', body, encoding: 'utf8', size: body.length, truncated: false });

  it('BL-096 a file with what looks like a credential is read as it is, whatever policy says of shapes', async () => {
    const body = `const KEY = '${TOKEN}';\x1b[0m\n`;
    for (const shapes of ['warn', 'redact', 'block'] as const) {
      const { result } = await file(text(body), { obligations: [leaks('redact', shapes)] });
      expect(result).toMatchObject({ body, leaks: [{ name: 'github_token', action: 'warned' }] });
    }
  });

  it('BL-096 a file is written byte for byte', async () => {
    const world = await worldOf({ obligations: [leaks('block', 'block')] });
    const body = `API_KEY="example"\ntoken ${TOKEN}\nhash ${'ab'.repeat(32)}\n`;
    await call(world.deps, world.scope, { key: { step: 0, call: 2 }, capability: 'fs.write', args: { path: 'a', body } });
    expect(world.executed).toEqual([expect.objectContaining({ op: 'write', body })]);
    expect(await sinks(world)).not.toContain(TOKEN);
  });

  it('a live secret in a file is replaced; in bytes it is masked in place, so that nothing moves', async () => {
    const { result } = await file(text(`password=${SECRET}\n`));
    expect(result.body).toBe('password=[redacted]\n');
    const bytes = Buffer.concat([Buffer.from([0, 255, 254]), Buffer.from(SECRET), Buffer.from([1, 2])]);
    const { result: binary } = await file({
      op: 'read',
      body: bytes.toString('base64'),
      encoding: 'base64',
      size: bytes.length,
      truncated: false,
    });
    const out = Buffer.from(String(binary.body), 'base64');
    expect(out.length).toBe(bytes.length);
    expect(out.includes(SECRET)).toBe(false);
    expect([...out.subarray(0, 3), ...out.subarray(-2)]).toEqual([0, 255, 254, 1, 2]);
  });
});

describe('other results', () => {
  const generate = (content: string, args: Json, options: Options = {}) =>
    callWorld({
      secrets: options.secrets ?? [SECRET],
      decide: () => decision({ obligations: options.obligations ?? [] }),
      model: {
        generate: async (request) => ({
          content: `${content} saw ${JSON.stringify(request)}`,
          toolCalls: [{ id: '1', name: 'write_file', args }],
          usage: { inputTokens: 1, outputTokens: 1 },
        }),
      },
    });

  it('a model sees no live secret, and its reply to write a file is not corrupted by shapes', async () => {
    const world = await generate('ok', { body: TOKEN }, { obligations: [leaks('redact', 'redact')] });
    const messages = [{ role: 'user', content: `the value is ${SECRET}` }];
    const reply = await call(world.deps, world.scope, { key: { step: 0, call: 1 }, capability: 'model.generate', args: { messages } });
    expect(JSON.stringify(reply)).not.toContain(SECRET);
    expect(reply).toMatchObject({
      result: { content: expect.stringContaining('the value is [redacted]'), toolCalls: [{ args: { body: TOKEN } }] },
    });
  });

  it('a reply is scrubbed before it is stored and delivered, or kept back', async () => {
    const post = (world: CallWorld) =>
      call(world.deps, world.scope, { key: { step: 1, call: 2 }, capability: 'message.post', args: { body: `use ${TOKEN} or ${SECRET}` } });
    const redacting = await worldOf({ obligations: [leaks('redact', 'redact')] });
    await post(redacting);
    const stored = await redacting.store.threads.messages(redacting.scope.thread, { limit: 10 });
    expect(stored.at(-1)?.body).toBe('use [redacted] or [redacted]');
    const blocking = await worldOf({ obligations: [leaks('redact', 'block')] });
    expect(await post(blocking)).toMatchObject({ result: { error: { code: 'leak_blocked' } } });
    expect(await blocking.store.threads.messages(blocking.scope.thread, { limit: 10 })).toHaveLength(1);
  });

  it('a checkpoint holds no live secret, and its shapes as the loop has them', async () => {
    const world = await worldOf({ obligations: [leaks('redact', 'redact')] });
    const body = JSON.stringify({ messages: [{ content: `${SECRET} ${TOKEN}` }] });
    await call(world.deps, world.scope, {
      key: { step: 0, call: 0 },
      capability: 'checkpoint.save',
      args: { schema: 'x.y', version: 1, body },
    });
    const saved = await world.store.checkpoints.latest(world.scope.run);
    expect(saved?.body).toBe(JSON.stringify({ messages: [{ content: `[redacted] ${TOKEN}` }] }));
  });

  it('BL-098 an error is evidence: what looks like a credential is gone too', async () => {
    const world = await worldOf({
      tools: { exec: () => Promise.reject(new Error(`fatal: https://${TOKEN}@git.example.test/o/r not found`)) },
    });
    const reply = await call(world.deps, world.scope, {
      key: { step: 0, call: 2 },
      capability: 'shell.exec',
      args: {
        argv: [
          'git',
          '-c',
          `http.extraheader='Authorization: Basic ${Buffer.from(`x:${SECRET}`).toString('base64')}'`,
          'clone',
          `https://${TOKEN}@git.example.test/o/r`,
        ],
      },
    });
    expect(reply).toMatchObject({ result: { error: { message: 'fatal: https://[redacted]@git.example.test/o/r not found' } } });
    for (const text of [TOKEN, SECRET, Buffer.from(SECRET).toString('base64').slice(4, 30)]) expect(await sinks(world)).not.toContain(text);
  });

  it('the newest output of a background command is scrubbed as output is', async () => {
    const command_ = {
      id: 'bg_1',
      pid: 5,
      pgid: 5,
      log: '/home/agent/.outwork/log/0.log',
      running: true,
      exitCode: null,
      signal: null,
      bytes: 5,
      ageMs: 1,
    };
    const world = await worldOf({
      tools: {
        background: () => Promise.resolve({ op: 'tail', command: command_, text: `${SECRET.slice(-6)} \x1b[1mkey ${SECRET} ${TOKEN}` }),
      },
      obligations: [leaks('redact', 'redact')],
    });
    const reply = await call(world.deps, world.scope, {
      key: { step: 0, call: 2 },
      capability: 'shell.background',
      args: { op: 'tail', id: 'bg_1' },
    });
    expect(reply).toMatchObject({ result: { command: command_, text: '[redacted] key [redacted] [redacted]' } });
  });
});
