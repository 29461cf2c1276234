import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Container, ContainerModule, type ServiceIdentifier } from 'inversify';
import type { AdapterManifest } from '../core/adapter.ts';
import type { CallDeps } from '../core/capability/call.ts';
import { CeilingAccounts } from '../core/capability/ceilings.ts';
import { LocalPermits } from '../core/capability/permits.ts';
import { Reservations } from '../core/capability/reservations.ts';
import type { CompiledConfig } from '../core/config.ts';
import { UsageError } from '../core/errors.ts';
import type { KernelEvent, NewEvent } from '../core/events.ts';
import { createOperations } from '../core/kernel-operations.ts';
import { CEILINGS, RETENTION, SAFETY } from '../core/limits.ts';
import type { PolicyEngine } from '../core/policy/types.ts';
import type { Broker } from '../core/ports/broker.ts';
import type { Placement } from '../core/ports/placement.ts';
import type { Store } from '../core/ports/store.ts';
import { Deliverer } from '../core/run/deliver.ts';
import { LiveRuns } from '../core/run/live-runs.ts';
import { ProgressLog } from '../core/run/progress.ts';
import { Pruner } from '../core/run/prune.ts';
import { Scheduler } from '../core/run/scheduler.ts';
import { type Clock, steadyClock } from '../core/seams/clock.ts';
import type { Delivery } from '../core/seams/delivery.ts';
import type { Logger } from '../core/seams/logger.ts';
import type { RunTokens } from '../core/seams/run-tokens.ts';
import type { SandboxEngine } from '../core/seams/sandbox-engine.ts';
import { createMembraneService } from '../core/wire/membrane-service.ts';
import type { MembraneService } from '../core/wire/service.ts';
import { ensureGuest } from '../harnesses/guest/bundle.ts';
import { scriptedHarness } from '../harnesses/scripted/harness.ts';
import { compileArgumentChecks } from './argument-check.ts';
import { noSecrets } from './broker/no-secrets.ts';
import { requireOpenFiles } from './config/open-files.ts';
import { databaseFile } from './config/state-dir.ts';
import { threadDelivery } from './delivery/thread-delivery.ts';
import { noEgress } from './egress/no-egress.ts';
import { EventFollower } from './event-follower.ts';
import { guestExecutor } from './executor/guest-executor.ts';
import { hostLoopExecutor } from './executor/host-loop-executor.ts';
import { createLocalKernel, type LocalKernel } from './kernel.ts';
import { lineLogger } from './log/line-logger.ts';
import { scrubbedLogger } from './log/scrubbed-logger.ts';
import type { Membrane } from './membrane/channel.ts';
import { createMembrane } from './membrane/server.ts';
import { createRunTokens } from './membrane/tokens.ts';
import { type CountingGateway, countingGateway } from './model/counting-gateway.ts';
import { createScriptedGateway } from './model/scripted-gateway.ts';
import { disposablePerRun, hostLoopShell, persistentPerUser } from './placement/sandboxed.ts';
import { createKernelPolicy } from './policy/kernel-policy.ts';
import type { ReloadingPolicyEngine } from './policy/wasm-engine.ts';
import { checkBubblewrap } from './sandbox/bubblewrap/checks.ts';
import { createBubblewrapEngine } from './sandbox/bubblewrap/engine.ts';
import { requireLimits } from './sandbox/cgroup/check.ts';
import { SandboxManager } from './sandbox/manager.ts';
import { openSqliteStore, type SqliteStore } from './store/mikro-orm/store.ts';
import { lockStateDir } from './store/state-lock.ts';

export interface KernelOptions {
  /** Adapters that replace built-in ones. */
  readonly adapters?: readonly AdapterManifest[];
  readonly clock?: Clock;
  /** @internal Another guest bundle than our own; tests put a hostile one into the sandbox. */
  readonly guest?: { readonly file: string; readonly sha256: string };
  /** @internal Stands before the store; tests fill the disk with it. */
  readonly store?: (store: SqliteStore) => SqliteStore;
  /** Where the kernel says what no run can carry, secrets replaced; default writes one line for each warning and error to standard error. */
  readonly log?: Logger;
  /** Gets every event from the start on, once and in order. */
  readonly onEvent?: (event: KernelEvent) => void;
  /** Errors that no run can carry; default gives them to the log. */
  readonly onError?: (error: unknown, run: string | undefined) => void;
}

const id = <T>(name: string): ServiceIdentifier<T> => Symbol(name) as ServiceIdentifier<T>;
const T = {
  clock: id<Clock>('Clock'),
  store: id<SqliteStore>('Store'),
  policy: id<ReloadingPolicyEngine>('PolicyEngine'),
  tokens: id<RunTokens>('RunTokens'),
  model: id<CountingGateway>('ModelGateway'),
  delivery: id<Delivery>('Delivery'),
  engine: id<SandboxEngine>('SandboxEngine'),
  accounts: id<CeilingAccounts>('CeilingAccounts'),
  calls: id<CallDeps>('CallDeps'),
  service: id<MembraneService>('MembraneService'),
  membrane: id<Membrane>('Membrane'),
  sandboxes: id<SandboxManager>('SandboxManager'),
  placements: id<ReadonlyMap<Placement['name'], Placement>>('Placements'),
  deliverer: id<Deliverer>('Deliverer'),
  scheduler: id<Scheduler>('Scheduler'),
  kernel: id<LocalKernel>('Kernel'),
};

/**
 * The composition root: the one place that knows every adapter. Takes the state directory's lock, opens the store and puts the kernel
 * together; nothing is claimed before `start`.
 *
 * @throws ConfigError, PrerequisiteError, PolicyError; StoreError `state_locked`. Nothing stays open then.
 */
export async function createKernel(config: CompiledConfig, options: KernelOptions = {}): Promise<LocalKernel> {
  requireOpenFiles();
  const lock = await lockStateDir(config.stateDir);
  const undo: (() => Promise<void> | void)[] = [() => lock.release()];
  try {
    const clock = options.clock ?? steadyClock();
    const broker = (await adapterOf(options, 'broker')?.create({ clock })) ?? noSecrets;
    const log = scrubbedLogger(options.log ?? lineLogger((text) => process.stderr.write(text)), () => broker.liveSecrets());
    const onError = options.onError ?? ((error, run) => log.error({ run, err: error }, 'error outside a run'));
    const container = new Container();
    await container.load(module(config, { ...options, clock, broker, log, onError }, undo));
    return await container.getAsync(T.kernel);
  } catch (error) {
    for (const step of undo.splice(0).reverse()) await step();
    throw error;
  }
}

const adapterOf = <Port extends AdapterManifest['port']>(options: KernelOptions, port: Port) =>
  options.adapters?.find((adapter): adapter is Extract<AdapterManifest, { port: Port }> => adapter.port === port);

type ModuleOptions = KernelOptions & Required<Pick<KernelOptions, 'clock' | 'log' | 'onError'>> & { readonly broker: Broker };

function module(config: CompiledConfig, options: ModuleOptions, undo: (() => Promise<void> | void)[]) {
  const { broker, log, onError } = options;
  const kept = <Part>(part: Part, close: (part: Part) => Promise<void>): Part => {
    // A part that is ready only after another one has failed must not stay open.
    if (undo.length === 0) void close(part);
    else undo.push(() => close(part));
    return part;
  };
  const { capacity, stateDir } = config;
  const live = new LiveRuns();
  let kickDelivery = () => {};
  let wake = () => {};

  return new ContainerModule((bind_) => {
    const bind = bind_.bind;
    bind(T.clock).toConstantValue(options.clock);

    bind(T.store)
      .toResolvedValue(async () => {
        const store = kept(await openSqliteStore({ file: databaseFile(stateDir) }), (opened) => opened.close());
        return options.store?.(store) ?? store;
      }, [])
      .inSingletonScope();

    bind(T.policy)
      .toResolvedValue(
        async (clock: Clock, store: Store) => {
          const onEvent = (event: NewEvent) =>
            void store.events.append(event, clock.now()).catch((error: unknown) => {
              // Of a kernel that could not be put together only the fault counts, not what was on its way when the store closed.
              if (undo.length > 0) onError(error, undefined);
            });
          return kept(await createKernelPolicy(config, { clock, decisions: store.decisions, onEvent }), (policy) => policy.close());
        },
        [T.clock, T.store],
      )
      .inSingletonScope();

    bind(T.tokens)
      .toResolvedValue((clock: Clock) => createRunTokens({ clock }), [T.clock])
      .inSingletonScope();

    bind(T.model)
      .toResolvedValue(
        async (clock: Clock) =>
          countingGateway(
            (await adapterOf(options, 'model')?.create({ clock })) ?? (await createScriptedGateway({ scenario: config.model.scenario })),
          ),
        [T.clock],
      )
      .inSingletonScope();

    bind(T.delivery)
      .toResolvedValue(async (clock: Clock) => (await adapterOf(options, 'delivery')?.create({ clock })) ?? threadDelivery, [T.clock])
      .inSingletonScope();

    bind(T.engine)
      .toResolvedValue(
        async (clock: Clock) => {
          const { file } = options.guest ?? (await ensureGuest());
          if (config.profile === 'production') await requireLimits();
          return createBubblewrapEngine({
            stateDir,
            guestBundle: file,
            nodeBinary: process.execPath,
            clock,
            startMs: config.capacity.sandboxStartMs,
            limits: config.limits,
            log,
          });
        },
        [T.clock],
      )
      .inSingletonScope();

    bind(T.accounts)
      .toResolvedValue((clock: Clock) => new CeilingAccounts(config.ceilings ?? CEILINGS, clock), [T.clock])
      .inSingletonScope();

    bind(T.calls)
      .toResolvedValue(
        (clock: Clock, store: Store, policy: PolicyEngine, model: CountingGateway, accounts: CeilingAccounts): CallDeps => {
          const progress = new ProgressLog({
            events: store.events,
            clock,
            broker,
            isLive: (run) => live.find(run) !== undefined,
            onError: (error) => onError(error, undefined),
          });
          return {
            clock,
            store,
            policy,
            model,
            capacity,
            live,
            permits: new LocalPermits(),
            reservations: new Reservations({
              concurrentCalls: Number.POSITIVE_INFINITY,
              callsPerRun: SAFETY.callsPerRun,
              accounts,
            }),
            broker,
            progress: (scope, data) => progress.add(scope, data),
            egress: noEgress,
            logInput: config.policy.logInput ?? 'redacted',
            argumentFault: compileArgumentChecks(),
            onMessage: () => kickDelivery(),
          };
        },
        [T.clock, T.store, T.policy, T.model, T.accounts],
      )
      .inSingletonScope();

    bind(T.service)
      .toResolvedValue(
        (calls: CallDeps) => {
          const { progress = () => {} } = calls;
          return createMembraneService({ ...calls, progress, onError });
        },
        [T.calls],
      )
      .inSingletonScope();

    bind(T.membrane)
      .toResolvedValue(
        async (service: MembraneService, tokens: RunTokens, clock: Clock) => {
          const { sha256 } = options.guest ?? (await ensureGuest());
          return kept(
            await createMembrane({ service, tokens, clock, guestDigest: () => sha256, onFault: (error) => onError(error, undefined) }),
            (membrane) => membrane.close(),
          );
        },
        [T.service, T.tokens, T.clock],
      )
      .inSingletonScope();

    bind(T.sandboxes)
      .toResolvedValue(
        (engine: SandboxEngine, membrane: Membrane, tokens: RunTokens, clock: Clock, store: Store) =>
          new SandboxManager({
            stateDir,
            engine,
            membrane,
            tokens,
            clock,
            startMs: capacity.sandboxStartMs,
            idleMs: capacity.sandboxIdleMs,
            sliceOf: async ({ tenant, user }) => {
              const found = await store.users.get(tenant, user);
              if (found === undefined) throw new UsageError('not_found', `No user ${user} in tenant ${tenant}`);
              return found.slice;
            },
            onEvent: (event) => {
              if (event.type === 'sandbox.stopped') live.forgetSandbox(String(event.data.sandbox));
              store.events.append(event, clock.now()).catch((error: unknown) => onError(error, undefined));
            },
          }),
        [T.engine, T.membrane, T.tokens, T.clock, T.store],
      )
      .inSingletonScope();

    bind(T.placements)
      .toResolvedValue(
        (sandboxes: SandboxManager, service: MembraneService, tokens: RunTokens, clock: Clock) => {
          const inHost = hostLoopExecutor({
            service,
            harnesses: new Map([['scripted', scriptedHarness]]),
            clock,
            cancelGraceMs: capacity.cancelGraceMs,
          });
          const inGuest = guestExecutor({ live, tokens, clock, cancelGraceMs: capacity.cancelGraceMs });
          const all = [
            hostLoopShell({ sandboxes, executor: inHost }),
            disposablePerRun({ sandboxes, executor: inGuest }),
            persistentPerUser({ sandboxes, executor: inGuest }),
          ];
          return new Map(all.map((placement) => [placement.name, placement]));
        },
        [T.sandboxes, T.service, T.tokens, T.clock],
      )
      .inSingletonScope();

    bind(T.deliverer)
      .toResolvedValue(
        (store: Store, clock: Clock, delivery: Delivery) => {
          const deliverer = new Deliverer({ store, clock, delivery, onError });
          kickDelivery = () => deliverer.kick();
          return deliverer;
        },
        [T.store, T.clock, T.delivery],
      )
      .inSingletonScope();

    bind(T.scheduler)
      .toResolvedValue(
        (calls: CallDeps, tokens: RunTokens, placements: ReadonlyMap<Placement['name'], Placement>) => {
          const holder = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
          const scheduler = new Scheduler({
            ...calls,
            config,
            tokens,
            placements,
            holder,
            alone: true,
            onError,
            onEnded: () => kickDelivery(),
          });
          wake = () => scheduler.wake();
          return scheduler;
        },
        [T.calls, T.tokens, T.placements],
      )
      .inSingletonScope();

    bind(T.kernel)
      .toResolvedValue(
        (store: SqliteStore, clock, policy, membrane, engine, sandboxes, scheduler, deliverer, model, accounts) =>
          createLocalKernel({
            config,
            onError: (error) => onError(error, undefined),
            operations: createOperations({
              config,
              store,
              clock,
              policy,
              control: policy,
              decide: async (input) => policy.decide(input),
              logInput: config.policy.logInput ?? 'redacted',
              live,
              image: engine.image,
              runsPerUser: config.runsPerUser,
              wake: () => wake(),
            }),
            store,
            clock,
            log,
            policy,
            membrane,
            engine,
            sandboxes,
            scheduler,
            deliverer,
            pruner: new Pruner({ store, clock, retention: config.retention ?? RETENTION, onError }),
            model,
            accounts,
            engineFault: () => engineFault(stateDir),
            follower:
              options.onEvent &&
              new EventFollower({ events: store.events, clock, onEvent: options.onEvent, onError: (error) => onError(error, undefined) }),
            unlock: () => undo[0]?.(),
          }),
        [T.store, T.clock, T.policy, T.membrane, T.engine, T.sandboxes, T.scheduler, T.deliverer, T.model, T.accounts],
      )
      .inSingletonScope();
  });
}

/** The first thing that the engine lacks on this machine. */
async function engineFault(stateDir: string): Promise<string | undefined> {
  return (await checkBubblewrap({ stateDir })).find(({ ok }) => !ok)?.detail;
}
