import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import { newId, type Owner, ownerKey } from '../../core/ids.ts';
import type { SandboxState } from '../../core/kernel.ts';
import type { SandboxTools } from '../../core/ports/placement.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { RunTokens } from '../../core/seams/run-tokens.ts';
import type { SandboxEngine, SandboxHandle } from '../../core/seams/sandbox-engine.ts';
import type { Membrane, SandboxChannel } from '../membrane/channel.ts';
import { lacksRoom, MAKE_ROOM } from '../no-room.ts';
import { homeDir, workspaceDir } from './roots.ts';

export interface SandboxManagerDeps {
  readonly stateDir: string;
  readonly engine: SandboxEngine;
  readonly membrane: Membrane;
  readonly tokens: RunTokens;
  readonly clock: Clock;
  readonly startMs: number;
  readonly idleMs: number;
  /** The owner's slice of the sub-id range. @throws UsageError `not_found` */
  readonly sliceOf: (owner: Owner) => Promise<number>;
  readonly onEvent: (event: NewEvent) => void;
}

/** A sandbox that is up: its guest has said hello. */
export interface RunningSandbox extends Owner {
  readonly generation: string;
  readonly channel: SandboxChannel;
  readonly handle: SandboxHandle;
  /** Resolves when the guest or the whole sandbox is gone. */
  readonly lost: Promise<{ readonly reason: string }>;
}

interface Entry {
  readonly starting: Promise<RunningSandbox>;
  running: RunningSandbox | undefined;
  users: number;
  stopIdle: () => void;
}

/** A sandbox token outlives no kernel (its key does not) and no generation; the expiry is the third bound. */
const SANDBOX_TOKEN_MS = 7 * 24 * 3600 * 1000;

/**
 * Sandboxes of this kernel by key: one per owner for what persists, one per run for what is disposable.
 * Starting twice under one key gives one sandbox; a sandbox that died leaves no entry.
 */
export class SandboxManager implements AsyncDisposable {
  readonly #deps: SandboxManagerDeps;
  readonly #entries = new Map<string, Entry>();
  /** Sandboxes that are being ended, by key. */
  readonly #endingOf = new Map<string, Promise<void>>();
  /** Counters of channels that are closed. */
  readonly #closed = { requests: 0, hostToSandbox: 0, bytes: 0 };

  constructor(deps: SandboxManagerDeps) {
    this.#deps = deps;
  }

  get engine(): SandboxEngine {
    return this.#deps.engine;
  }

  /** Adopts the sandbox of `key`, or starts it. Every `acquire` needs one `release`. */
  async acquire(key: string, owner: Owner): Promise<{ sandbox: RunningSandbox; cold: boolean }> {
    // Two sandboxes never share an owner's files: what is being ended under this key is gone first.
    while (this.#endingOf.has(key)) await this.#endingOf.get(key);
    const found = this.#entries.get(key);
    const entry = found ?? this.#begin(key, owner);
    entry.users += 1;
    entry.stopIdle();
    try {
      return { sandbox: await entry.starting, cold: found === undefined };
    } catch (error) {
      entry.users -= 1;
      throw error;
    }
  }

  release(key: string, generation: string): void {
    const entry = this.#entries.get(key);
    if (entry?.running?.generation !== generation) return;
    entry.users -= 1;
    if (entry.users > 0) return;
    entry.stopIdle = this.#deps.clock.after(this.#deps.idleMs, () => void this.stop(key, 'idle'));
  }

  /** Ends the sandbox of `key`; resolves when no process of it is alive. */
  async stop(key: string, reason: string): Promise<void> {
    const entry = this.#entries.get(key);
    // Lost by itself and already being ended: the evidence is the same one.
    if (entry === undefined) return this.#endingOf.get(key);
    this.#entries.delete(key);
    entry.stopIdle();
    await this.#end(key, entry.starting, reason);
  }

  /** How many sandboxes there are in each state. */
  count(): Readonly<Record<SandboxState, number>> {
    const count = { starting: 0, busy: 0, idle: 0, stopping: this.#endingOf.size };
    for (const { running, users } of this.#entries.values()) count[running === undefined ? 'starting' : users > 0 ? 'busy' : 'idle'] += 1;
    return count;
  }

  running(): readonly RunningSandbox[] {
    return [...this.#entries.values()].flatMap((entry) => entry.running ?? []);
  }

  counters(): { requests: number; hostToSandbox: number; bytes: number; connections: number } {
    const sum = { ...this.#closed, connections: 0 };
    for (const { channel } of this.running()) {
      add(sum, channel.counters);
      sum.connections += channel.counters.connections;
    }
    return sum;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((key) => this.stop(key, 'kernel closing')));
    await Promise.all(this.#endingOf.values());
  }

  #begin(key: string, owner: Owner): Entry {
    const entry: Entry = { starting: this.#start(owner), running: undefined, users: 0, stopIdle: () => {} };
    this.#entries.set(key, entry);
    const drop = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    entry.starting.then((sandbox) => {
      entry.running = sandbox;
      void sandbox.lost.then(({ reason }) => {
        if (this.#entries.get(key) !== entry) return;
        drop();
        void this.#end(key, entry.starting, reason);
      });
    }, drop);
    return entry;
  }

  async #start(owner: Owner): Promise<RunningSandbox> {
    const { engine, membrane, tokens, clock, stateDir, onEvent } = this.#deps;
    const generation = newId('sandbox', clock.now());
    const slice = await this.#deps.sliceOf(owner);
    const socketDir = join(stateDir, 's', generation);
    const token = await tokens.mint(
      { kind: 'sandbox', tenant: owner.tenant, user: owner.user, sandbox: generation },
      clock.now() + SANDBOX_TOKEN_MS,
    );
    let channel: SandboxChannel | undefined;
    let handle: SandboxHandle | undefined;
    try {
      await engine.prepareSocketDir({ socketDir, slice });
      channel = await membrane.open({ tenant: owner.tenant, user: owner.user, generation, socketDir });
      await engine.grantSocket(channel.socketPath, slice);
      handle = await engine.start({
        tenant: owner.tenant,
        user: owner.user,
        generation,
        slice,
        socketDir,
        workspaceDir: workspaceDir(stateDir, owner),
        homeDir: homeDir(stateDir, owner),
        token,
      });
      await this.#ready(channel, handle);
    } catch (error) {
      await channel?.close();
      await handle?.stop();
      tokens.revoke({ sandbox: generation });
      // What cannot be removed now the next kernel's sweep removes.
      await rm(socketDir, { recursive: true, force: true }).catch(() => {});
      throw startError(error);
    }
    onEvent({ type: 'sandbox.started', tenant: owner.tenant, data: { user: owner.user, sandbox: generation, engine: engine.name } });
    const lost = Promise.race([handle.ended, channel.lost.then(() => ({ reason: 'the guest closed its control stream' }))]);
    return { ...owner, generation, channel, handle, lost };
  }

  /** Waits for the guest's hello; a sandbox that ends first, or takes too long, is a failed start. */
  async #ready(channel: SandboxChannel, handle: SandboxHandle): Promise<void> {
    let stopTimer = () => {};
    const late = new Promise<never>((_, reject) => {
      stopTimer = this.#deps.clock.after(this.#deps.startMs, () =>
        reject(new SandboxError('start_failed', 'The guest did not say hello in time', { retryable: true })),
      );
    });
    const ended = handle.ended.then(({ reason }) => {
      throw new SandboxError('start_failed', `The sandbox ended while starting: ${reason}`);
    });
    try {
      await Promise.race([channel.ready, ended, late]);
    } finally {
      stopTimer();
      ended.catch(() => {});
    }
  }

  /** Ends what was, or is being, started under `key`; whoever asks for the key meanwhile waits for it. */
  #end(key: string, starting: Promise<RunningSandbox>, reason: string): Promise<void> {
    const before = this.#endingOf.get(key);
    const ending = (async () => {
      await before;
      const sandbox = await starting.catch(() => undefined);
      if (sandbox !== undefined) await this.#endNow(sandbox, reason);
    })().finally(() => {
      if (this.#endingOf.get(key) === ending) this.#endingOf.delete(key);
    });
    this.#endingOf.set(key, ending);
    return ending;
  }

  async #endNow(sandbox: RunningSandbox, reason: string): Promise<void> {
    this.#deps.tokens.revoke({ sandbox: sandbox.generation });
    await sandbox.channel.close();
    add(this.#closed, sandbox.channel.counters);
    await sandbox.handle.stop();
    // The guest's stream may close before the engine has said that it was the engine, and for which limit.
    const ended = await sandbox.handle.ended;
    const why = ended.code === undefined ? { reason } : { reason: ended.reason, code: ended.code };
    this.#deps.onEvent({
      type: 'sandbox.stopped',
      tenant: sandbox.tenant,
      data: { user: sandbox.user, sandbox: sandbox.generation, ...why },
    });
  }
}

/** A full disk has many faces while a sandbox is being made; it is called by its name, whatever could not be written. */
function startError(error: unknown): unknown {
  if (!lacksRoom(error) || (error instanceof SandboxError && error.code === 'disk_full')) return error;
  return new SandboxError('disk_full', 'no sandbox can be made: the file system of the state directory is full', {
    cause: error,
    hint: MAKE_ROOM,
  });
}

const add = (sum: { requests: number; hostToSandbox: number; bytes: number }, more: SandboxChannel['counters']): void => {
  sum.requests += more.requests;
  sum.hostToSandbox += more.hostToSandbox;
  sum.bytes += more.bytes;
};

export const userKey = (owner: Owner): string => `user\0${ownerKey(owner)}`;
export const runKey = (run: string): string => `run\0${run}`;

/** Commands and file operations in a sandbox on the kernel's behalf, for one run. */
export const toolsOf = (sandbox: RunningSandbox, run: string): SandboxTools => ({
  exec: (command, signal, onProgress) => sandbox.channel.exec(run, command, signal, onProgress),
  file: (operation, signal) => sandbox.channel.file(operation, signal),
  background: (operation, signal) => sandbox.channel.background(operation, signal),
  oomKills: async () => sandbox.handle.oomKills?.(),
  refusedProcesses: async () => sandbox.handle.refusedProcesses?.(),
});

/** Tells the guest to end what the run's commands left and to forget its token. A guest that is gone holds nothing. */
export function forgetRun(sandbox: RunningSandbox, run: string): void {
  try {
    sandbox.channel.send({ type: 'forget', run });
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
  }
}
