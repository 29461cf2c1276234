import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KernelEvent } from '../../core/events.ts';
import type { RunView } from '../../core/kernel.ts';
import type { Run } from '../../core/run/types.ts';
import { startOutwork } from '../support/launcher.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ow-serve-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const outwork = (...args: string[]) => startOutwork(dir, ['--state', join(dir, 's'), ...args]);

async function json<T>(...args: string[]): Promise<T> {
  const { text, exit } = outwork(...args, '--json');
  expect(await exit, text.stderr).toBe(0);
  return JSON.parse(text.stdout) as T;
}

/** A served kernel whose model follows a scenario, and a user of its API. */
async function serve(scenario: string) {
  writeFileSync(join(dir, 'outwork.yaml'), `model: {scenario: ${scenario}}\napi: {listen: "127.0.0.1:0"}\n`);
  const server = outwork('serve');
  const [, url = ''] = await server.prints(/^listening on (\S+)$/m);
  const { token } = await json<{ token: string }>('user', 'token', 'ann');
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (body: string) => {
    const answer = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body: JSON.stringify({ body }) });
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { run: Run }).run;
  };
  const get = async <T>(path: string) => (await (await fetch(`${url}${path}`, { headers })).json()) as T;
  /** Reads the event stream until one fits. */
  const until = async (fits: (event: KernelEvent) => boolean): Promise<KernelEvent[]> => {
    const seen: KernelEvent[] = [];
    const abort = new AbortController();
    const { body } = await fetch(`${url}/v1/events/stream?from=0`, { headers, signal: abort.signal });
    let text = '';
    for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
        text = text.slice(end + 2);
        if (data === undefined) continue;
        seen.push(JSON.parse(data));
        if (!fits(seen.at(-1) as KernelEvent)) continue;
        abort.abort();
        return seen;
      }
    }
    throw new Error(`the stream ended: ${server.text.stderr}`);
  };
  return { server, post, get, until };
}

it('a turn over the API: posted, followed on the stream, its reply read, its calls counted', async () => {
  await json('user', 'add', 'ann');
  const { server, post, get, until } = await serve('hello');
  const run = await post('hi');
  const seen = await until(({ type }) => type === 'run.completed');
  expect(seen.map(({ type }) => type)).toEqual(expect.arrayContaining(['run.queued', 'run.claimed', 'run.placed', 'call.dispatched']));
  expect(new Set(seen.map((event) => event.run))).toEqual(new Set([run.id]));
  const { messages } = await get<{ messages: { author: string; body: string }[] }>(`/v1/threads/${run.thread}`);
  expect(messages.map(({ author, body }) => [author, body])).toEqual([
    ['user', 'hi'],
    ['agent', 'Hello.'],
  ]);
  expect(await get('/readyz')).toEqual({ ok: true, draining: false });
  server.child.kill('SIGTERM');
  expect(await server.exit).toBe(0);
  const dispatched = server.text.stderr.split('\n').filter((line) => line.includes('"msg":"call.dispatched"'));
  for (const line of dispatched)
    expect(JSON.parse(line)).toMatchObject({
      run: run.id,
      permit: expect.stringMatching(/^prm_/),
      decision: expect.stringMatching(/^dec_/),
    });
  expect(dispatched.length).toBeGreaterThan(0);
});

it('SIGTERM in the middle of a command: the run goes back to the queue at no cost, and the next kernel takes it up', async () => {
  await json('user', 'add', 'ann');
  const { server, post, until } = await serve('kill-once');
  const run = await post('go');
  await until(({ type, data }) => type === 'call.dispatched' && data.capability === 'shell.exec');
  server.child.kill('SIGTERM');
  expect(await server.exit, server.text.stderr).toBe(0);
  const view = await json<RunView>('runs', 'show', run.id);
  expect(view.run).toMatchObject({ state: 'queued', reclaims: 0, fence: 1 });
  expect(view.attempts).toMatchObject([{ fence: 1, outcome: 'lost' }]);
  expect(view.lastEvent?.type).toBe('run.reclaimed');
  expect(server.text.stderr).toMatch(/"msg":"run\.reclaimed"/);

  const next = await serve('kill-once');
  // Whether the command happened nobody knows: the next kernel asks a person, and does not do it again.
  await next.until((event) => event.type === 'run.parked' && event.run === run.id);
  expect((await next.get<RunView>(`/v1/runs/${run.id}`)).run).toMatchObject({ state: 'parked', fence: 2, gate: { kind: 'unknown' } });
  next.server.child.kill('SIGTERM');
  expect(await next.server.exit).toBe(0);
});
