import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CallReply, CallRequest } from '../../../core/capability/types.ts';
import { canonicalJson, type Json } from '../../../core/json.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { ModelReply, ToolCall } from '../../../core/seams/model-gateway.ts';
import type { CheckpointBody, MembraneClient } from '../../../core/wire/protocol.ts';
import { scriptedHarness } from '../../../harnesses/scripted/harness.ts';

type FinalReply = Exclude<CallReply, { effect: 'permit' }>;
const done = (result: Json): FinalReply => ({ effect: 'done', result, replayed: false });

/** A ledger over a model and tools: what was done once is replayed; other arguments under one key are an error. */
class LedgerClient implements MembraneClient {
  readonly calls: CallRequest[] = [];
  readonly executed: string[] = [];
  readonly rows = new Map<string, { args: string; reply: FinalReply }>();
  saved: CheckpointBody | undefined;
  steering: { seq: number; body: string }[] = [];
  cancelled = false;
  /** How often it was asked, and up to where it has told. */
  asked = 0;
  #told = 0;
  /** Throws before the call with this number is answered, once. */
  dieAt = Number.POSITIVE_INFINITY;
  answer: (request: CallRequest) => FinalReply | Promise<FinalReply>;

  constructor(answer: (request: CallRequest) => FinalReply | Promise<FinalReply>) {
    this.answer = answer;
  }

  async context() {
    return {
      run: 'run_1',
      thread: 'thr_1',
      harness: 'scripted',
      messages: [{ seq: 1, author: 'user' as const, user: 'u', body: 'go' }],
      local: true,
    };
  }

  async checkpoint() {
    return this.saved;
  }

  async call(request: CallRequest): Promise<FinalReply> {
    this.calls.push(request);
    if (this.calls.length > this.dieAt) throw Object.assign(new Error('killed'), { code: 'guest_lost' });
    const key = `${request.key.step}.${request.key.call}`;
    const args = canonicalJson([request.capability, request.args]);
    const known = this.rows.get(key);
    if (known !== undefined) {
      if (known.args !== args) throw Object.assign(new Error(key), { code: 'nondeterministic' });
      return this.#hinted(known.reply);
    }
    const reply = request.capability === 'checkpoint.save' ? done({ saved: true }) : await this.answer(request);
    if (request.capability === 'checkpoint.save') this.saved = request.args as unknown as CheckpointBody;
    this.executed.push(`${request.capability} ${key}`);
    this.rows.set(key, { args, reply });
    return this.#hinted(reply);
  }

  callStream(request: CallRequest) {
    return this.call(request);
  }

  async progress() {}

  /** Like the kernel: a reply says when asking would tell something new. */
  #hinted(reply: FinalReply): FinalReply {
    const waits = this.cancelled || this.steering.some(({ seq }) => seq > this.#told);
    return reply.effect === 'done' && waits ? { ...reply, steering: true } : reply;
  }

  async steer(afterSeq: number) {
    this.asked += 1;
    this.#told = Math.max(this.#told, ...this.steering.map(({ seq }) => seq));
    return { messages: this.steering.filter(({ seq }) => seq > afterSeq), cancelled: this.cancelled };
  }
}

const reply = (content: string, toolCalls: readonly ToolCall[] = []): FinalReply =>
  done({ content, toolCalls, usage: { inputTokens: 1, outputTokens: 1 } } satisfies ModelReply as unknown as Json);
const tool = (name: string, args: Json, id = `c-${name}`): ToolCall => ({ id, name, args });

/** A model with this script: one list of tool calls a step, then an end. */
const scriptOf = (
  script: readonly (readonly ToolCall[])[],
  result: (request: CallRequest) => FinalReply = () => done({ stdout: 'out' }),
) => {
  return (request: CallRequest): FinalReply => {
    if (request.capability !== 'model.generate') return request.capability === 'message.post' ? done({ posted: true }) : result(request);
    const { messages } = request.args as unknown as { messages: { role: string }[] };
    const step = messages.filter(({ role }) => role === 'assistant').length;
    return reply(`reply ${step}`, script[step] ?? []);
  };
};

const run = (client: MembraneClient, signal = new AbortController().signal) => scriptedHarness(client, signal);

describe('one run of the loop', () => {
  it('counts its keys: checkpoint, model, tools, the post last', async () => {
    const client = new LedgerClient(
      scriptOf([[tool('shell', { argv: ['ls'] }), tool('read_file', { path: 'a' }, 'c-2')], [tool('write_file', { path: 'b', body: '' })]]),
    );
    expect(await run(client)).toEqual({ kind: 'completed' });
    expect(client.executed).toEqual([
      'checkpoint.save 0.0',
      'model.generate 0.1',
      'shell.exec 0.2',
      'fs.read 0.3',
      'checkpoint.save 1.0',
      'model.generate 1.1',
      'fs.write 1.2',
      'checkpoint.save 2.0',
      'model.generate 2.1',
      'message.post 2.2',
    ]);
    expect(client.calls.at(-1)?.args).toEqual({ body: 'reply 2' });
    expect(client.calls[0]?.args).toMatchObject({ schema: 'outwork.loop', version: 1 });
  });

  it('gives results, denials, errors and unknown tools to the model as text', async () => {
    const calls = [
      tool('shell', { argv: ['x'] }, 'a'),
      tool('read_file', { path: 'p' }, 'b'),
      tool('list_files', { path: '.' }, 'c'),
      tool('fly', {}, 'd'),
    ];
    const client = new LedgerClient(
      scriptOf([calls], ({ capability }) => {
        if (capability === 'fs.read') return { effect: 'denied', reasons: [{ code: 'no_reads', message: 'not here' }] };
        if (capability === 'fs.list') throw Object.assign(new Error('bad path'), { code: 'invalid_arguments' });
        return done({ stdout: 'o', exitCode: 0 });
      }),
    );
    expect(await run(client)).toEqual({ kind: 'completed' });
    const asked = client.calls.findLast(({ capability }) => capability === 'model.generate') as CallRequest;
    const { messages } = asked.args as unknown as { messages: { role: string; content: string; toolCallId?: string }[] };
    expect(messages.filter(({ role }) => role === 'tool')).toEqual([
      { role: 'tool', toolCallId: 'a', content: '{"stdout":"o","exitCode":0}' },
      { role: 'tool', toolCallId: 'b', content: 'denied: no_reads: not here' },
      { role: 'tool', toolCallId: 'c', content: 'error: invalid_arguments: bad path' },
      { role: 'tool', toolCallId: 'd', content: 'error: there is no tool fly' },
    ]);
  });

  it('parks when a call parks, wherever', async () => {
    for (const capability of ['model.generate', 'shell.exec', 'message.post']) {
      const script = scriptOf([[tool('shell', { argv: ['x'] })]]);
      const gate = { kind: 'approval', ref: 'cal_1', reason: 'ask' } as const;
      const client = new LedgerClient((request) => (request.capability === capability ? { effect: 'parked', gate } : script(request)));
      expect(await run(client)).toEqual({ kind: 'parked' });
    }
  });

  it('ends as cancelled between two steps', async () => {
    const client = new LedgerClient(
      scriptOf([[tool('shell', { argv: ['x'] })]], () => {
        client.cancelled = true;
        return done({});
      }),
    );
    expect(await run(client)).toEqual({ kind: 'cancelled' });
    expect(await run(new LedgerClient(scriptOf([])), AbortSignal.abort())).toEqual({ kind: 'cancelled' });
  });

  it('fails on a model that fails, is denied or says nonsense', async () => {
    const failing = (result: FinalReply) => run(new LedgerClient(() => result));
    expect(await failing(done({ error: { code: 'dispatch_failed', message: 'down' } }))).toEqual({
      kind: 'failed',
      code: 'dispatch_failed',
      message: 'down',
    });
    expect(await failing({ effect: 'denied', reasons: [{ code: 'no_model', message: 'no' }] })).toMatchObject({
      kind: 'failed',
      code: 'denied',
    });
    expect(await failing(done({ content: 5 }))).toMatchObject({ kind: 'failed', code: 'model_malformed' });
  });

  it('is bounded in steps', async () => {
    const client = new LedgerClient(scriptOf(Array.from({ length: 200 }, () => [tool('shell', { argv: ['x'] })])));
    expect(await run(client)).toMatchObject({ kind: 'failed', code: 'step_limit' });
    expect(client.executed.filter((line) => line.startsWith('model.generate'))).toHaveLength(64);
  });

  it('keeps every checkpoint and request within the wire, whatever its tools print', async () => {
    const loud = '"\\\u0001\n'.repeat(300_000);
    const client = new LedgerClient(
      scriptOf(
        Array.from({ length: 40 }, (_, i) => [tool('shell', { argv: ['x'] }, `c${i}`)]),
        () => done({ stdout: loud, stderr: loud }),
      ),
    );
    expect(await run(client)).toEqual({ kind: 'completed' });
    for (const { args } of client.calls) expect(Buffer.byteLength(JSON.stringify(args))).toBeLessThan(SAFETY.membraneBodyBytes);
  });

  it('keeps them within the wire whatever its model asks for: a tool gets every argument whole, the model is reminded of a part', async () => {
    const body = '"\\\u0001\n'.repeat(100_000);
    const client = new LedgerClient(
      scriptOf(
        Array.from({ length: 40 }, (_, i) => [
          tool('write_file', { path: 'f', content: body }, `a${i}`),
          tool('shell', { argv: ['x'], stdin: body }, `b${i}`),
        ]),
      ),
    );
    expect(await run(client)).toEqual({ kind: 'completed' });
    const bodyOf = (args: Json) => (args as { content?: string; stdin?: string }).content ?? (args as { stdin?: string }).stdin;
    const used = client.calls.filter(({ capability }) => capability === 'fs.write' || capability === 'shell.exec');
    expect(used).toHaveLength(80);
    for (const { args } of used) expect(bodyOf(args) === body).toBe(true);
    for (const { capability, args } of client.calls) {
      if (capability === 'checkpoint.save') expect(Buffer.byteLength((args as { body: string }).body)).toBeLessThan(SAFETY.checkpointBytes);
      if (capability === 'model.generate') expect(Buffer.byteLength(JSON.stringify(args))).toBeLessThan(SAFETY.membraneBodyBytes);
    }
  });

  it('takes steering in at the next step', async () => {
    const client = new LedgerClient(
      scriptOf([[tool('shell', { argv: ['x'] })]], () => {
        client.steering.push({ seq: 2, body: 'also this' });
        return done({});
      }),
    );
    expect(await run(client)).toEqual({ kind: 'completed' });
    const asked = client.calls
      .filter(({ capability }) => capability === 'model.generate')
      .map(({ args }) => JSON.stringify(args).includes('also this'));
    expect(asked).toEqual([false, true]);
    // Once at its start and once when a reply said so.
    expect(client.asked).toBe(2);
  });
});

describe('redrive', () => {
  it('L1 resumes after a death at any call, repeats no effect and asks nothing else under a known key', async () => {
    const names = ['shell', 'read_file', 'write_file', 'list_files', 'read_thread'];
    const script = fc.array(fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(script, fc.array(fc.nat(12), { maxLength: 4 }), fc.nat(3), async (steps, deaths, steerAfter) => {
        const calls = steps.map((step, s) => step.map((name, n) => tool(name, { s, n }, `c${s}.${n}`)));
        const plain = new LedgerClient(scriptOf(calls, ({ args }) => done({ stdout: JSON.stringify(args) })));
        expect(await run(plain)).toEqual({ kind: 'completed' });

        const killed = new LedgerClient(scriptOf(calls, ({ args }) => done({ stdout: JSON.stringify(args) })));
        for (const [i, death] of deaths.entries()) {
          if (i === steerAfter) killed.steering.push({ seq: 9, body: 'steer' });
          killed.dieAt = killed.calls.length + death;
          await run(killed).catch((error) => expect(error.code).toBe('guest_lost'));
        }
        killed.dieAt = Number.POSITIVE_INFINITY;
        expect(await run(killed)).toEqual({ kind: 'completed' });
        expect(killed.executed).toEqual(plain.executed);
      }),
    );
  });

  it('refuses a checkpoint of another loop', async () => {
    const client = new LedgerClient(scriptOf([]));
    client.saved = { schema: 'another', version: 1, body: '{}' };
    await expect(run(client)).rejects.toMatchObject({ code: 'checkpoint_damaged' });
  });

  it('stops at an error after which the attempt has no say', async () => {
    for (const code of ['stale_fence', 'nondeterministic', 'budget_exhausted']) {
      const client = new LedgerClient(
        scriptOf([[tool('shell', { argv: ['x'] })]], () => {
          throw Object.assign(new Error('no'), { code });
        }),
      );
      await expect(run(client)).rejects.toMatchObject({ code });
    }
  });
});
