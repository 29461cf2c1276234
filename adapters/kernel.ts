import { tokenApprovals } from '../core/approval/operations.ts';
import type { CeilingAccounts } from '../core/capability/ceilings.ts';
import type { CompiledConfig } from '../core/config.ts';
import { SandboxError, UsageError } from '../core/errors.ts';
import type { Owner } from '../core/ids.ts';
import type { Kernel, KernelOperations, Readiness, Servable } from '../core/kernel.ts';
import { authenticate } from '../core/kernel-operations.ts';
import { SAFETY } from '../core/limits.ts';
import type { Measurable, MeasureSnapshot } from '../core/measure.ts';
import type { PolicyEngine } from '../core/policy/types.ts';
import type { Store } from '../core/ports/store.ts';
import type { Deliverer } from '../core/run/deliver.ts';
import type { Pruner } from '../core/run/prune.ts';
import type { Scheduler } from '../core/run/scheduler.ts';
import type { Clock } from '../core/seams/clock.ts';
import type { Logger } from '../core/seams/logger.ts';
import type { SandboxEngine } from '../core/seams/sandbox-engine.ts';
import type { Membrane } from './membrane/channel.ts';
import type { CountingGateway } from './model/counting-gateway.ts';
import { type SandboxManager, userKey } from './sandbox/manager.ts';

export interface KernelParts {
  readonly config: CompiledConfig;
  readonly operations: KernelOperations;
  readonly store: Store & { readonly commits?: number };
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy: PolicyEngine;
  readonly membrane: Membrane;
  readonly engine: SandboxEngine;
  readonly sandboxes: SandboxManager;
  readonly scheduler: Scheduler;
  readonly deliverer: Deliverer;
  readonly pruner: Pruner;
  readonly model: CountingGateway;
  /** Errors that no run can carry. */
  readonly onError: (error: unknown) => void;
  readonly accounts: CeilingAccounts;
  /** Why no sandbox can be made on this machine now; undefined when one can. */
  readonly engineFault: () => Promise<string | undefined>;
  /** Watches the log; ends before the store does. */
  readonly follower?: { start(): Promise<void>; close(): Promise<void> } | undefined;
  /** Gives the state directory back. */
  readonly unlock: () => Promise<void> | void;
}

/** A kernel in this process: the operations, and the life of what stands behind them. */
export interface LocalKernel extends Kernel, Measurable, Servable {
  /** The log it was given, with live secrets and what looks like a credential replaced: whoever serves this kernel logs through it. */
  readonly log: Logger;
  /** OpenAPI 3.1 document of the membrane. */
  membraneDocument(): unknown;
}

export function createLocalKernel(parts: KernelParts): LocalKernel {
  let starting: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let verifying: Promise<unknown> | undefined;
  // Timers of the kernel do not hold the process; a started kernel does.
  let alive: NodeJS.Timeout | undefined;

  const start = async (): Promise<void> => {
    const { reloadFault } = parts.policy.status();
    if (reloadFault !== undefined) parts.log.warn({}, `rules on disk are refused, older ones run (outwork policy status): ${reloadFault}`);
    await parts.follower?.start();
    await parts.engine.sweep();
    // Beside the rest of the start: who needs a sandbox waits for it, and nobody else. What is wrong now may be mended before the first run.
    verifying = parts.engine.image?.({}).catch(parts.onError);
    await parts.store.deliveries.sweep(parts.clock.now());
    parts.accounts.restore(await parts.store.calls.spent(parts.accounts.windowStartMs));
    alive = setInterval(() => {}, 2 ** 30);
    parts.scheduler.start();
    parts.deliverer.kick();
    parts.pruner.start();
  };
  const close = async (): Promise<void> => {
    await starting?.catch(() => {});
    const steps = [
      () => parts.scheduler[Symbol.asyncDispose](),
      () => parts.deliverer[Symbol.asyncDispose](),
      () => parts.pruner[Symbol.asyncDispose](),
      () => parts.sandboxes[Symbol.asyncDispose](),
      () => verifying,
      () => parts.membrane.close(),
      () => parts.policy.close(),
      () => parts.follower?.close(),
      () => parts.store.close(),
      () => parts.unlock(),
    ];
    // Whatever one of them cannot do, the others are closed, and the state directory is given back.
    const faults: unknown[] = [];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        faults.push(error);
      }
    }
    clearInterval(alive);
    for (const fault of faults.slice(1)) parts.onError(fault);
    if (faults.length > 0) throw faults[0];
  };
  const readiness = cached(parts.clock, READINESS_MS, () => look(parts));
  return {
    ...parts.operations,
    config: parts.config,
    log: parts.log,
    start: () => (starting ??= start()),
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
    measure: () => measure(parts),
    importFile: (owner, path, source) => importFile(parts, owner, path, source),
    membraneDocument: () => parts.membrane.openApi(),
    authenticate: (token) => authenticate(parts, token),
    ...tokenApprovals({
      store: parts.store,
      clock: parts.clock,
      decide: async (input) => parts.policy.decide(input),
      logInput: parts.config.policy.logInput ?? 'redacted',
      wake: () => parts.scheduler.wake(),
    }),
    readiness,
    gauges: async () => ({
      runs: await parts.store.runs.unfinished(),
      sandboxes: parts.sandboxes.count(),
      policy: parts.policy.status(),
    }),
  };
}

/** How long an answer about readiness counts: the write and the processes it takes are not repeated for each who asks. */
const READINESS_MS = 5000;

async function look({ store, policy, engineFault }: KernelParts): Promise<Readiness> {
  const fault = (error: unknown) => (error instanceof Error ? error.message : String(error));
  const [stored, able] = await Promise.all([store.probe().then(() => undefined, fault), engineFault().catch(fault)]);
  return { store: stored, policy: policy.status().ready ? undefined : 'no rules are loaded', engine: able };
}

/** The last answer while it is fresh; one question at a time. */
function cached<T>(clock: Clock, freshMs: number, ask: () => Promise<T>): () => Promise<T> {
  let known: { readonly answer: Promise<T>; readonly atMs: number } | undefined;
  return () => {
    const nowMs = clock.now();
    if (known === undefined || nowMs - known.atMs >= freshMs) known = { answer: ask(), atMs: nowMs };
    return known.answer;
  };
}

async function measure({ store, sandboxes, model }: KernelParts): Promise<MeasureSnapshot> {
  const usage = sandboxes
    .running()
    .map(async ({ tenant, user, generation, handle }) => ({ tenant, user, generation, ...(await handle.usage()) }));
  return {
    commits: store.commits ?? 0,
    membrane: sandboxes.counters(),
    model: model.counters(),
    sandboxes: await Promise.all(usage),
  };
}

async function importFile(
  { store, sandboxes }: KernelParts,
  owner: Owner,
  path: string,
  source: AsyncIterable<Uint8Array>,
): Promise<{ bytes: number }> {
  if ((await store.users.get(owner.tenant, owner.user)) === undefined) throw new UsageError('not_found', `No user ${owner.user}`);
  const key = userKey(owner);
  const { sandbox } = await sandboxes.acquire(key, owner);
  const never = new AbortController().signal;
  let bytes = 0;
  let first = true;
  const write = async (chunk: Buffer) => {
    const body = chunk.toString('base64');
    const answer = await sandbox.channel.file({ op: 'write', path, body, encoding: 'base64', append: !first }, never);
    if (answer.op !== 'write') throw new SandboxError('start_failed', 'The file helper answered another operation');
    first = false;
    bytes += chunk.length;
  };
  try {
    for await (const chunk of chunksOf(source, SAFETY.fileBytes / 2)) await write(chunk);
    if (first) await write(Buffer.alloc(0));
    return { bytes };
  } finally {
    sandboxes.release(key, sandbox.generation);
  }
}

async function* chunksOf(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const piece of source) {
    rest = Buffer.concat([rest, piece]);
    for (; rest.length >= size; rest = rest.subarray(size)) yield rest.subarray(0, size);
  }
  if (rest.length > 0) yield rest;
}
