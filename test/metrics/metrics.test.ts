import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createMetrics, type Metrics } from '../../adapters/metrics/metrics.ts';
import type { EventType } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import type { KernelGauges } from '../../core/kernel.ts';
import { type ManualClock, manualClock } from '../membrane/manual-clock.ts';

const idle: KernelGauges = {
  runs: [],
  sandboxes: { starting: 0, busy: 0, idle: 0, stopping: 0 },
  policy: { ready: true, digests: { rules: 'r', data: 'd' }, loadedAtMs: 0, reloadFault: undefined },
};

let gauges: KernelGauges;
let metrics: Metrics;
let clock: ManualClock;
beforeEach(() => {
  gauges = idle;
  clock = manualClock(90_000);
  metrics = createMetrics({ gauges: async () => gauges, clock });
});
afterEach(() => metrics.close());

const tell = (type: EventType, data: { [key: string]: Json } = {}, atMs = 0) =>
  metrics.onEvent({ cursor: 1, type, run: 'run_1', atMs, data });
/** Value of one line. */
const value = async (line: string) => {
  const found = (await metrics.text()).split('\n').find((text) => text.startsWith(`outwork_${line} `));
  return found === undefined ? undefined : Number(found.split(' ').at(-1));
};

it('gauges say what the kernel has now', async () => {
  gauges = {
    runs: [
      { state: 'queued', gate: undefined, count: 4 },
      { state: 'running', gate: undefined, count: 2 },
      { state: 'parked', gate: 'unknown', count: 3 },
    ],
    sandboxes: { starting: 1, busy: 2, idle: 5, stopping: 0 },
    policy: { ...idle.policy, loadedAtMs: 30_000, reloadFault: 'malformed' },
  };
  expect(await value('queue_depth')).toBe(4);
  expect(await value('runs_active{state="running"}')).toBe(2);
  expect(await value('runs_active{state="parked"}')).toBe(3);
  expect(await value('runs_parked{gate="unknown"}')).toBe(3);
  expect(await value('sandboxes{state="idle"}')).toBe(5);
  expect(await value('policy_age_seconds')).toBe(60);
  expect(await value('policy_reload_refused')).toBe(1);
  expect(await value('event_loop_delay_seconds{quantile="0.99"}')).toBeGreaterThanOrEqual(0);
  // Back to nothing, not left where it was.
  gauges = idle;
  expect(await value('queue_depth')).toBe(0);
  expect(await value('runs_parked{gate="unknown"}')).toBe(0);
});

it('counters say what the log says', async () => {
  tell('run.claimed', { fence: 1 }, 1000);
  tell('run.placed', { fence: 1, placement: 'host-loop-shell' }, 1250);
  tell('call.dispatched', { capability: 'shell.exec' });
  tell('call.denied', { capability: 'shell.exec', effect: 'ask' });
  tell('call.denied', { capability: 'shell.exec', effect: 'deny' });
  tell('membrane.refused', { code: 'unauthenticated' });
  tell('run.parked', { gate: 'unknown' });
  tell('run.completed');
  tell('delivery.sent');
  expect(await value('claim_to_seat_seconds_sum{placement="host-loop-shell"}')).toBe(0.25);
  for (const effect of ['allow', 'ask', 'deny']) expect(await value(`decisions_total{capability="shell.exec",effect="${effect}"}`)).toBe(1);
  expect(await value('membrane_refusals_total{code="unauthenticated"}')).toBe(1);
  expect(await value('run_outcomes_total{outcome="parked"}')).toBe(1);
  expect(await value('run_outcomes_total{outcome="completed"}')).toBe(1);
  expect(await value('deliveries_total{result="sent"}')).toBe(1);
});

it('a seat of another attempt than the one that was claimed is not timed', async () => {
  tell('run.claimed', { fence: 1 }, 1000);
  tell('run.placed', { fence: 2, placement: 'host-loop-shell' }, 9000);
  expect(await value('claim_to_seat_seconds_count{placement="host-loop-shell"}')).toBeUndefined();
});

it('nothing that a sandbox writes becomes a label', async () => {
  tell('run.failed', { code: 'executor_anything_it_likes' });
  tell('membrane.refused', { code: 'malformed', operation: '/x/anything' });
  expect(await metrics.text()).not.toContain('anything');
});

it('README lists every metric, and no other', async () => {
  metrics.onRequest('me', 200);
  metrics.onStreams(1);
  const names = [...(await metrics.text()).matchAll(/^# TYPE (outwork_\w+) /gm)].map(([, name]) => name);
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const listed = [...readme.matchAll(/`(outwork_\w+)`/g)].map(([, name]) => name);
  expect([...new Set(listed)].sort()).toEqual([...new Set(names)].sort());
});
