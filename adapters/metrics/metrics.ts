import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { KernelEvent } from '../../core/events.ts';
import type { KernelGauges } from '../../core/kernel.ts';
import type { Clock } from '../../core/seams/clock.ts';

export interface Metrics {
  readonly contentType: string;
  /** The text of a scrape; what is read from the kernel is read for it. */
  text(): Promise<string>;
  /** Counts what an event of the log says. */
  onEvent(event: KernelEvent): void;
  onRequest(route: string, status: number): void;
  onStreams(open: number): void;
  close(): void;
}

/** Claims that are remembered until their seat: more are not at work at once. */
const WAITING_FOR_A_SEAT = 1000;
const SEAT_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20];
/** Resolution of the event loop's delay; a timer of so many milliseconds is all it costs. */
const DELAY_RESOLUTION_MS = 20;

/**
 * Metrics of one kernel, in a registry of their own. Labels come from closed sets (states, capabilities, codes of ours), never from what a user or
 * a sandbox writes: their number is bounded. README lists the names, and a test compares.
 */
export function createMetrics(options: { readonly gauges: () => Promise<KernelGauges>; readonly clock: Clock }): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name: `outwork_${name}`, help, labelNames: [...labelNames], registers });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name: `outwork_${name}`, help, labelNames: [...labelNames], registers });

  const queue = gauge('queue_depth', 'Runs that wait for a claim');
  const active = gauge('runs_active', 'Runs that have been claimed and have not ended, by state', ['state']);
  const parked = gauge('runs_parked', 'Runs that wait at a gate, by gate', ['gate']);
  const sandboxes = gauge('sandboxes', 'Sandboxes by state', ['state']);
  const policyAge = gauge('policy_age_seconds', 'Time since the rules that decide now were loaded');
  const policyRefused = gauge('policy_reload_refused', '1 while newer rules on disk are refused and older ones decide');
  const delay = gauge('event_loop_delay_seconds', 'Delay of the event loop since the last scrape', ['quantile']);
  const memory = gauge('resident_memory_bytes', 'Resident memory of the kernel process');
  const seat = new Histogram({
    ...{ name: 'outwork_claim_to_seat_seconds', help: 'From the claim of an attempt to its seat', labelNames: ['placement'] },
    ...{ buckets: SEAT_SECONDS, registers },
  });
  const decisions = counter('decisions_total', 'Decisions on capability calls', ['capability', 'effect']);
  const outcomes = counter('run_outcomes_total', 'Attempts that ended, by how', ['outcome']);
  const refusals = counter('membrane_refusals_total', 'Requests of sandboxes that were refused before they became a call', ['code']);
  const deliveries = counter('deliveries_total', 'Replies on their way to a channel, by how that ended', ['result']);
  const requests = counter('http_requests_total', 'Requests to the HTTP API', ['route', 'status']);
  const streams = gauge('event_streams', 'Event streams that are open');

  const loop = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  loop.enable();
  const claims = new Map<string, { readonly fence: unknown; readonly atMs: number }>();

  const onEvent = ({ type, run, atMs, data }: KernelEvent): void => {
    const word = (key: string): string => String(data[key] ?? 'none');
    switch (type) {
      case 'run.claimed':
        if (run === undefined) break;
        if (claims.size >= WAITING_FOR_A_SEAT) claims.delete(claims.keys().next().value as string);
        claims.set(run, { fence: data.fence, atMs });
        break;
      case 'run.placed': {
        const claim = claims.get(run ?? '');
        claims.delete(run ?? '');
        if (claim !== undefined && claim.fence === data.fence) seat.observe({ placement: word('placement') }, (atMs - claim.atMs) / 1000);
        break;
      }
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
      case 'run.parked':
      case 'run.reclaimed':
        claims.delete(run ?? '');
        outcomes.inc({ outcome: type.slice('run.'.length) });
        break;
      case 'call.dispatched':
        decisions.inc({ capability: word('capability'), effect: 'allow' });
        break;
      case 'call.denied':
        decisions.inc({ capability: word('capability'), effect: word('effect') });
        break;
      case 'membrane.refused':
        refusals.inc({ code: word('code') });
        break;
      case 'delivery.sent':
      case 'delivery.failed':
      case 'delivery.unknown':
        deliveries.inc({ result: type.slice('delivery.'.length) });
        break;
      default:
        break;
    }
  };

  const look = async (): Promise<void> => {
    const now = await options.gauges();
    const count = (state: string) => now.runs.filter((row) => row.state === state).reduce((sum, row) => sum + row.count, 0);
    queue.set(count('queued'));
    for (const state of ['running', 'cancelling', 'parked']) active.set({ state }, count(state));
    for (const kind of ['approval', 'credential', 'setup', 'unknown', 'resource']) {
      parked.set({ gate: kind }, now.runs.find(({ gate }) => gate === kind)?.count ?? 0);
    }
    for (const [state, number] of Object.entries(now.sandboxes)) sandboxes.set({ state }, number);
    policyAge.set(Math.max(0, options.clock.now() - now.policy.loadedAtMs) / 1000);
    policyRefused.set(now.policy.reloadFault === undefined ? 0 : 1);
    for (const [quantile, ns] of [
      ['0.5', loop.percentile(50)],
      ['0.99', loop.percentile(99)],
      ['1', loop.max],
    ] as const) {
      // The monitor measures whole intervals: what is beyond its own resolution is delay.
      delay.set({ quantile }, loop.count === 0 ? 0 : Math.max(0, ns / 1e9 - DELAY_RESOLUTION_MS / 1000));
    }
    loop.reset();
    memory.set(process.memoryUsage.rss());
  };

  return {
    contentType: registry.contentType,
    async text() {
      await look();
      return registry.metrics();
    },
    onEvent,
    onRequest: (route, status) => requests.inc({ route, status: String(status) }),
    onStreams: (open) => streams.set(open),
    close: () => void loop.disable(),
  };
}
