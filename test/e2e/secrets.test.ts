import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { serveApi } from '../../adapters/api/http/server.ts';
import { logEvent } from '../../adapters/log/log-event.ts';
import { pinoLogger } from '../../adapters/log/pino-logger.ts';
import { createMetrics } from '../../adapters/metrics/metrics.ts';
import type { DeliveryItem } from '../../core/index.ts';
import type { Json } from '../../core/json.ts';
import type { RunView } from '../../core/kernel.ts';
import { formsOf } from '../../core/leak/forms.ts';
import { PLACEMENTS, type PlacementName } from '../../core/run/types.ts';
import { steadyClock } from '../../core/seams/clock.ts';
import { type E2e, e2e, type ToolStep, workload } from '../support/e2e.ts';
import { TestBroker } from '../support/test-broker.ts';

const ADA = { tenant: 'default', user: 'ada' };
/** Has no known shape: only who knows it can find it. */
const SECRET = 'Tq7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0oWx2';
/** Looks like a credential and is none that is live; put together here, so that this file holds none. */
const SHAPED = ['ghp', 'n4Yd8WqLr2Mv6Bx0Kt5Hz9Cs3Jf7Gp1Ea2Uo'].join('_');
const CONFIG = `[remote]\ntoken = ${SHAPED}\nurl = https://example.test/\n`;

const sh = (script: string, more: { readonly [name: string]: Json } = {}): ToolStep => ({
  tool: 'shell',
  args: { argv: ['sh', '-c', script], ...more },
});
const HEX = "od -An -v -tx1 secret | tr -d ' \\n'";
const padded = (before: number) => `head -c ${before} /dev/zero | tr '\\0' x; cat secret; head -c 4000 /dev/zero | tr '\\0' y`;

/** Every way in which a command may print what is in the file `secret`. */
const STEPS: readonly ToolStep[] = [
  sh('cat secret; echo; cat secret >&2'),
  sh('base64 -w 0 secret; echo; base64 secret | tr -d "="'),
  sh(`${HEX}; echo; ${HEX} | tr a-f A-F; echo; ${HEX} | sed 's/../%&/g'`),
  sh('head -c 13 secret; sleep 0.1; tail -c +14 secret'),
  sh("head -c 9 secret; printf '\\033[31m'; tail -c +10 secret; printf '\\n'; sed 's/./&\\o33[0m/g' secret", { controls: 'keep' }),
  sh('head -c 20 secret; tail -c +21 secret >&2'),
  sh('echo failing >&2; cat secret >&2; exit 3'),
  sh('cat secret; echo; exec sleep 60', { background: true, lifetimeMs: 60_000 }),
  {
    tool: 'shell',
    args: { argv: ['sh', '-c', 'until [ -s "$1" ]; do sleep 0.02; done; cat "$1"', 'sh', '{{result.7.0.background.log}}'] },
  },
  { tool: 'background', args: { op: 'tail', id: '{{result.7.0.background.id}}' } },
  { tool: 'shell', args: { argv: ['echo', SECRET, Buffer.from(SECRET).toString('base64')], env: { TOKEN: SECRET } } },
  ...[0, 470, 500, 512, 800, 2000].map((before) => sh(padded(before), { outputBytes: 1024 })),
  sh('cat secret', { save: { path: 'copy' } }),
  sh('cat copy; cat no-such-file-"$(cat secret)"'),
  { tool: 'read_file', args: { path: 'copy' } },
  { tool: 'read_file', args: { path: 'secret' } },
  sh('for i in 1 2 3; do echo progress; cat secret; echo; sleep 0.4; done'),
  { tool: 'read_file', args: { path: 'config' } },
  { tool: 'write_file', args: { path: 'written', body: CONFIG } },
  sh('cmp config written && echo equal'),
];

/** Pieces of half a form or more that are in a text. */
const foundIn = (text: string): string[] =>
  formsOf(SECRET).flatMap(({ text: form, encoding }) => {
    const half = Math.ceil(form.length / 2);
    const pieces = Array.from({ length: form.length - half + 1 }, (_, at) => form.slice(at, at + half));
    return pieces.filter((piece) => text.includes(piece)).map((piece) => `${encoding}: ${piece}`);
  });

/** Every byte that the kernel keeps of its own, its database and what is not yet merged into it among them: no workspace, no HOME. */
function kernelBytes(stateDir: string): string {
  const own = readdirSync(stateDir).filter((name) => statSync(join(stateDir, name)).isFile());
  expect(own).toEqual(expect.arrayContaining(['outwork.db', 'outwork.db-wal']));
  return own.map((name) => readFileSync(join(stateDir, name), 'latin1')).join('');
}

/** What an API client of ada's is told of the run, over the network. */
async function apiAnswers({ kernel }: E2e, { run }: RunView): Promise<string> {
  const clock = steadyClock();
  const api = { listen: '127.0.0.1:0', nonLoopback: undefined, hosts: [], metrics: 'operator' } as const;
  await using metrics = new AsyncDisposableStack();
  const counted = metrics.adopt(createMetrics({ gauges: () => kernel.gauges(), clock }), (made) => made.close());
  await using server = await serveApi({
    kernel,
    config: { ...kernel.config, api },
    version: 'test',
    clock,
    log: kernel.log,
    metrics: counted,
  });
  const { token } = await kernel.issueToken({ ...ADA, name: 'ada', ttlMs: 60_000 });
  const paths = [`/v1/runs/${run.id}`, '/v1/runs', `/v1/threads/${run.thread}`, `/v1/events?run=${run.id}&limit=1000`];
  const answers = await Promise.all(
    paths.map(async (path) => {
      const response = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      expect(response.status, path).toBe(200);
      return response.text();
    }),
  );
  return answers.join('\n');
}

/** One turn of everything, by a kernel whose broker holds the secret, or does not; what each sink has got. */
async function spill(placement: PlacementName, live: boolean) {
  const broker = new TestBroker();
  if (live) broker.provide(ADA, 'vault', SECRET);
  const delivered: DeliveryItem[] = [];
  const channel = {
    port: 'delivery',
    name: 'kept',
    create: () => ({ name: 'kept', deliver: async (item: DeliveryItem) => void delivered.push(item) }),
  } as const;
  const lines: string[] = [];
  const log = pinoLogger({ level: 'debug', pretty: false, write: (text) => lines.push(text) });
  const late: { world?: E2e } = {};
  const seen: string[] = [];
  await using world = await e2e({
    placement,
    scenario: workload(STEPS, `Done: ${SECRET}`),
    onModel: async (request) => void seen.push(JSON.stringify(request)),
    kernel: { adapters: [broker.manifest, channel], log, onEvent: (event) => logEvent(late.world?.kernel.log ?? log, event) },
  });
  late.world = world;
  await world.kernel.importFile(ADA, 'secret', Readable.from([Buffer.from(SECRET)]));
  await world.kernel.importFile(ADA, 'config', Readable.from([Buffer.from(CONFIG)]));
  const view = await world.turn('go');
  world.kernel.log.error({ run: view.run.id, err: new Error(`upstream said ${SECRET}`) }, `refused with ${SECRET}`);
  await world.event(view.run.id, ({ type }) => type === 'delivery.sent');
  const events = JSON.stringify(await world.kernel.events(0, {}, 5000));
  const rows = JSON.stringify([view, await world.kernel.showThread('default', view.run.thread), await world.kernel.listDecisions(0, 5000)]);
  const api = await apiAnswers(world, view);
  const store = kernelBytes(world.stateDir);
  return { view, sinks: { model: seen.join('\n'), events, rows, api, store, delivery: JSON.stringify(delivered), log: lines.join('') } };
}

const resultsOf = (view: RunView): { [name: string]: Json }[] =>
  view.calls.flatMap(({ capability, outcome }) =>
    /^(shell|fs)\./.test(capability) && outcome?.kind === 'result' ? [outcome.result as { [name: string]: Json }] : [],
  );

describe.each(PLACEMENTS)('a live secret under %s', (placement) => {
  it('printed in any way, no half of it reaches model, events, store, delivery, API or log; the run goes on, and files stay as they are', async () => {
    const { view, sinks } = await spill(placement, true);
    expect(view.run.state).toBe('completed');
    for (const [name, text] of Object.entries(sinks)) expect(foundIn(text), name).toEqual([]);
    const results = resultsOf(view);
    expect(results).toHaveLength(STEPS.length);
    expect(results[0]).toMatchObject({
      stdout: '[redacted]\n',
      stderr: '[redacted]',
      leaks: [{ name: 'secret', count: 2, action: 'redacted' }],
    });
    expect(results[6]).toMatchObject({ exitCode: 3, stderr: 'failing\n[redacted]' });
    expect(sinks.events).toContain('progress\\n[redacted]');
    expect(sinks.delivery).toContain('Done: [redacted]');
    expect(sinks.log).toContain('refused with [redacted]');
    // What only looks like a credential is neither changed when read nor when written.
    expect(results.at(-3)).toMatchObject({ op: 'read', body: CONFIG });
    expect(results.at(-1)).toMatchObject({ exitCode: 0, stdout: 'equal\n' });
  });

  it('(control) by a broker that does not hold it, the same turn leaves it in every one of those places', async () => {
    const { view, sinks } = await spill(placement, false);
    expect(view.run.state).toBe('completed');
    for (const [name, text] of Object.entries(sinks)) expect(text.includes(SECRET), name).toBe(true);
    const found = foundIn(sinks.store).map((piece) => piece.split(':')[0]);
    for (const encoding of ['plain', 'base64', 'hex', 'percent']) expect(found).toContain(encoding);
  });
});
