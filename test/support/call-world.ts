import { compileArgumentChecks } from '../../adapters/argument-check.ts';
import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import type { CallDeps } from '../../core/capability/call.ts';
import { LocalPermits } from '../../core/capability/permits.ts';
import { Reservations } from '../../core/capability/reservations.ts';
import type { CallScope, CommandOutcome } from '../../core/capability/types.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { Decision, PolicyInput } from '../../core/policy/types.ts';
import type { Broker } from '../../core/ports/broker.ts';
import type { SandboxTools, Seat } from '../../core/ports/placement.ts';
import type { Store } from '../../core/ports/store.ts';
import { type LiveRun, LiveRuns } from '../../core/run/live-runs.ts';
import type { PlacementName } from '../../core/run/types.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { ModelGateway } from '../../core/seams/model-gateway.ts';

/** A clock that moves when a test moves it. */
export class ManualClock implements Clock {
  #now = 1_700_000_000_000;
  #timers = new Set<{ at: number; fn: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + ms, fn };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at)) {
      this.#timers.delete(timer);
      timer.fn();
    }
  }
}

export const decision = (change: Partial<Decision> = {}): Decision => ({
  effect: 'allow',
  reasons: [],
  obligations: [],
  digests: { rules: 'r', data: 'd' },
  durationUs: 1,
  ...change,
});

export const commandOutcome = (change: Partial<CommandOutcome> = {}): CommandOutcome => ({
  exitCode: 0,
  signal: null,
  timedOut: false,
  stdout: '',
  stderr: '',
  stdoutBytes: 0,
  stderrBytes: 0,
  truncated: false,
  wallMs: 1,
  ...change,
});

export interface CallWorld {
  readonly deps: CallDeps;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly scope: CallScope;
  readonly live: LiveRun;
  /** What policy was asked, in order. */
  readonly asked: PolicyInput[];
  /** What reached the sandbox, in order. */
  readonly executed: unknown[];
  /** Ends the attempt as if its lease had run out and claims the next one; only the fence changes. */
  nextAttempt(): Promise<CallScope>;
}

export interface WorldOptions {
  readonly placement?: PlacementName;
  readonly decide?: (input: PolicyInput) => Decision;
  readonly tools?: Partial<SandboxTools>;
  readonly model?: ModelGateway;
  readonly secrets?: readonly string[];
  readonly broker?: Partial<Broker>;
  readonly openRequests?: number;
}

/** One run with a seat over the reference store: everything real but what stands outside the kernel. */
export async function callWorld(options: WorldOptions = {}): Promise<CallWorld> {
  const clock = new ManualClock();
  const store = createMemoryStore();
  const asked: PolicyInput[] = [];
  const executed: unknown[] = [];
  const live = new LiveRuns();
  const tools: SandboxTools = {
    async exec(command) {
      executed.push(command);
      return commandOutcome({ stdout: 'ran\n' });
    },
    async file(operation) {
      executed.push(operation);
      return { op: 'list', entries: [], truncated: false };
    },
    async background(operation) {
      executed.push(operation);
      return { op: 'list', commands: [] };
    },
    ...options.tools,
  };
  await store.users.add({ tenant: 'default', name: 'ada', roles: ['user'], nowMs: clock.now() });
  await store.threads.post({ tenant: 'default', actor: 'ada', origin: 'operator', body: 'hello', nowMs: clock.now() });
  const claim = async () => {
    const run = await store.runs.claim({
      holder: 'here',
      nowMs: clock.now(),
      leaseMs: 30_000,
      deadlineMs: clock.now() + 1_800_000,
      perUser: 1,
    });
    if (run === undefined) throw new Error('nothing to claim');
    return run;
  };
  const placement = options.placement ?? 'host-loop-shell';
  const seatRun = async (): Promise<LiveRun> => {
    const run = await claim();
    const scope: CallScope = {
      tenant: 'default',
      user: 'ada',
      roles: ['user'],
      thread: run.thread,
      run: run.id,
      fence: run.fence,
      origin: 'operator',
      placement,
      engine: 'bubblewrap',
      wall: 'namespaces',
      caller: 'executor',
      deadlineMs: run.deadlineMs,
      sandbox: 'sbx_1',
    };
    const abort = new AbortController();
    const seat = { harness: 'scripted', tools } as unknown as Seat;
    const seated: LiveRun = {
      scope,
      seat,
      signal: abort.signal,
      gate: undefined,
      cancelRequested: false,
      steeringWaits: false,
      cancel: () => abort.abort(),
      exit: Promise.withResolvers(),
    };
    live.add(seated);
    return seated;
  };
  const first = await seatRun();
  const deps: CallDeps = {
    clock,
    store,
    policy: {
      decide(input) {
        asked.push(input);
        return options.decide?.(input) ?? decision();
      },
      status: () => ({ ready: true, digests: { rules: 'r', data: 'd' }, loadedAtMs: 0, reloadFault: undefined }),
      close: () => Promise.resolve(),
    },
    model: options.model ?? { generate: async () => ({ content: 'hi', toolCalls: [], usage: { inputTokens: 1, outputTokens: 1 } }) },
    capacity: CAPACITY,
    live,
    permits: new LocalPermits(),
    reservations: new Reservations({ concurrentCalls: 4, callsPerRun: 50 }),
    broker: { ...noSecrets, liveSecrets: () => options.secrets ?? [], ...options.broker },
    egress: { revoke: () => Promise.resolve(), openRequests: () => options.openRequests ?? 0 },
    argumentFault: compileArgumentChecks(),
    onMessage: () => {},
  };
  return {
    deps,
    store,
    clock,
    scope: first.scope,
    live: first,
    asked,
    executed,
    async nextAttempt() {
      clock.advance(60_000);
      await store.runs.expire(clock.now(), 3);
      return (await seatRun()).scope;
    },
  };
}
