import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CompiledConfig } from '../../../core/config.ts';
import { StoreError } from '../../../core/errors.ts';
import type { KernelGauges, Readiness } from '../../../core/kernel.ts';
import { steadyClock } from '../../../core/seams/clock.ts';
import type { Logger } from '../../../core/seams/logger.ts';
import { listenAddress } from '../../api/http/listen-address.ts';
import { serveApi } from '../../api/http/server.ts';
import { connectOperator } from '../../api/operator-client.ts';
import { OPERATOR_SOCKET } from '../../api/operator-methods.ts';
import { serveOperations } from '../../api/operator-server.ts';
import { createKernel, type KernelOptions } from '../../compose.ts';
import { ensureStateDir } from '../../config/state-dir.ts';
import type { LocalKernel } from '../../kernel.ts';
import { logEvent } from '../../log/log-event.ts';
import { pinoLogger } from '../../log/pino-logger.ts';
import { createMetrics, type Metrics } from '../../metrics/metrics.ts';
import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import { notifyManager } from '../service-manager.ts';
import { packageVersion } from '../version.ts';

export interface ServeOptions {
  readonly listen?: string;
}

/** How long a short command may hold the state directory before it counts as a kernel. */
const LOCK_PATIENCE_MS = 5000;
const LOCK_POLL_MS = 100;

/**
 * The kernel of the state directory with its HTTP API and its operator socket, until SIGTERM or Ctrl-C: then nothing more is claimed, what runs goes
 * back to the queue at no cost, sandboxes end. A second signal leaves at once.
 * @throws StoreError `state_locked` naming the holder's process; ConfigError; PrerequisiteError
 */
export async function serve(context: CommandContext, options: ServeOptions): Promise<number> {
  const { io, out } = context;
  const config = configOf(context, options.listen === undefined ? {} : { listen: options.listen });
  listenAddress(config.api);
  ensureStateDir(config.stateDir);
  const stopped = Promise.withResolvers<void>();
  const stopListening = io.onInterrupt((count) => (count > 1 ? io.exit(EXIT.interrupted) : stopped.resolve()));
  const log = pinoLogger({ level: config.log.level, pretty: io.stderr.isTTY === true, write: (text) => io.stderr.write(text) });
  try {
    await using service = await startService(config, log);
    const { url, socket } = service;
    if (out.json) out.record({ listening: url, socket, pid: process.pid });
    else out.line(`listening on ${url}`);
    log.info({ url, socket, pid: process.pid, placement: config.placement, profile: config.profile }, 'serving');
    for (const [part, fault] of Object.entries(await service.readiness())) {
      if (fault !== undefined) log.warn({ part, fault }, `no run can be served: ${fault} (outwork doctor)`);
    }
    await tell(io.env, 'ready', log);
    await stopped.promise;
    log.info({}, 'stopping: nothing more is claimed, what runs goes back to the queue');
    service.drain();
    await tell(io.env, 'stopping', log);
  } finally {
    stopListening();
  }
  log.info({}, 'stopped');
  return EXIT.good;
}

async function tell(env: CommandContext['io']['env'], what: 'ready' | 'stopping', log: Logger): Promise<void> {
  const fault = await notifyManager(env, what);
  if (fault !== undefined) log.warn({ fault }, 'the service manager could not be told');
}

interface Service extends AsyncDisposable {
  readonly url: string;
  readonly socket: string;
  /** What cannot serve a run now, and why. */
  readiness(): Promise<Readiness>;
  /** From now on `/readyz` says no. */
  drain(): void;
}

/** Opens what `serve` needs, in order; what was opened is closed again when a later step fails, and at the end, in reverse. */
async function startService(config: CompiledConfig, log: Logger): Promise<Service> {
  const opened = new AsyncDisposableStack();
  try {
    const clock = steadyClock();
    const late: { kernel?: LocalKernel } = {};
    const gauges = (): Promise<KernelGauges> => (late.kernel as LocalKernel).gauges();
    const metrics: Metrics = createMetrics({ gauges, clock });
    opened.defer(() => metrics.close());
    const onEvent: NonNullable<KernelOptions['onEvent']> = (event) => {
      metrics.onEvent(event);
      logEvent(late.kernel?.log ?? log, event);
    };
    const kernel = opened.use(await openKernel(config, { clock, log, onEvent }));
    late.kernel = kernel;
    const socket = join(config.stateDir, OPERATOR_SOCKET);
    opened.use(await serveOperations(kernel, socket));
    const api = opened.use(await serveApi({ kernel, config, version: packageVersion(), clock, log: kernel.log, metrics }));
    await kernel.start();
    const readiness = () => kernel.readiness();
    return { url: api.url, socket, readiness, drain: () => api.drain(), [Symbol.asyncDispose]: () => opened.disposeAsync() };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** A kernel that already runs here is refused at once; a command that holds the directory for a moment is waited for. */
async function openKernel(config: CompiledConfig, options: KernelOptions): Promise<LocalKernel> {
  for (let waitedMs = 0; ; waitedMs += LOCK_POLL_MS) {
    try {
      return await createKernel(config, options);
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'state_locked') || waitedMs >= LOCK_PATIENCE_MS) throw error;
      const running = await connectOperator(join(config.stateDir, OPERATOR_SOCKET));
      await running?.close();
      if (running !== undefined) throw error;
    }
    await sleep(LOCK_POLL_MS);
  }
}
