import type { CommandOutcome } from '../../core/capability/types.ts';
import type { BackgroundOperation, BackgroundResult, CommandProgress, ToolCommand } from '../../core/ports/placement.ts';
import type { ExitClaim } from '../../core/run/types.ts';
import type { ControlMessage, ControlReply, Harness } from '../../core/wire/protocol.ts';
import { wireError } from './errors.ts';
import type { FileClient } from './file-client.ts';
import type { Wire } from './http-wire.ts';
import { bindMembrane } from './membrane-client.ts';

type RunMessage = Extract<ControlMessage, { type: 'run' }>;

export interface RunsDeps {
  readonly wire: Wire;
  readonly sandboxToken: string;
  readonly harnesses: { readonly [name: string]: Harness };
  readonly files: FileClient;
  /** Runs a command to its end, or starts a background one. */
  run(command: ToolCommand, signal: AbortSignal, onProgress: (progress: CommandProgress) => void): Promise<CommandOutcome>;
  readonly background: { operate(operation: BackgroundOperation): Promise<BackgroundResult> };
  log(line: string): void;
}

/** What one run has going in this sandbox: its harness if it is ours, and the commands that run for it. */
interface LiveRun {
  /** Ends harness and commands; what came of it is still claimed. */
  readonly cancel: AbortController;
  /** As `cancel`, and nothing is said to the kernel any more. */
  readonly forgotten: AbortController;
  readonly commands: Set<Promise<unknown>>;
  harness: boolean;
}

/** The runs of this sandbox. Several at once are independent of each other. */
export class Runs {
  readonly #deps: RunsDeps;
  readonly #runs = new Map<string, LiveRun>();
  readonly #execs = new Map<string, AbortController>();

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /** Carries out one message of the control stream; never throws. */
  take(message: ControlMessage): void {
    switch (message.type) {
      case 'run':
        void this.#start(message);
        return;
      case 'cancel':
        this.#runs.get(message.run)?.cancel.abort();
        return;
      case 'forget':
        void this.#forget(message.run);
        return;
      case 'exec':
        void this.#exec(message.id, message.run, message.command);
        return;
      case 'exec.cancel':
        this.#execs.get(message.id)?.abort();
        return;
      case 'file':
        void this.#reply(message.id, async () => ({ file: await this.#deps.files.operate(message.operation) }));
        return;
      case 'background':
        void this.#reply(message.id, async () => ({ background: await this.#deps.background.operate(message.operation) }));
        return;
      case 'ping':
        return;
      default:
        this.#deps.log(`unknown control message ${JSON.stringify((message as { type?: unknown }).type)}`);
    }
  }

  async #start({ run, token, harness: name }: RunMessage): Promise<void> {
    if (this.#runs.get(run)?.harness) await this.#forget(run); // A new attempt of the same run: the old one has no say any more.
    const live = this.#live(run);
    live.harness = true;
    const { wire, harnesses, log } = this.#deps;
    const client = bindMembrane({
      wire,
      token,
      signal: live.cancel.signal,
      run: (command, onProgress) => this.#command(live, command, live.cancel.signal, onProgress),
    });
    const claim = await this.#claim(harnesses[name], name, (harness) => harness(client, live.cancel.signal), live);
    await Promise.allSettled(live.commands);
    if (live.forgotten.signal.aborted) return;
    this.#runs.delete(run);
    await wire.post('exit', token, claim).catch((error: Error) => log(`exit of ${run}: ${error.message}`));
  }

  async #claim(
    harness: Harness | undefined,
    name: string,
    start: (harness: Harness) => Promise<ExitClaim>,
    live: LiveRun,
  ): Promise<ExitClaim> {
    if (harness === undefined) return { kind: 'failed', code: 'harness_unknown', message: `This guest has no harness ${name}` };
    try {
      return await start(harness);
    } catch (error) {
      if (live.cancel.signal.aborted) return { kind: 'cancelled' };
      return { kind: 'failed', ...wireError(error, 'harness_failed') };
    }
  }

  async #exec(id: string, run: string, command: ToolCommand): Promise<void> {
    const live = this.#live(run);
    const own = new AbortController();
    this.#execs.set(id, own);
    const { wire, sandboxToken } = this.#deps;
    // Progress that does not get through is not missed: the next one tells more.
    const onProgress = (progress: CommandProgress) =>
      void wire.post('control.reply', sandboxToken, { id, progress }).catch(() => undefined);
    const signal = AbortSignal.any([own.signal, live.cancel.signal]);
    await this.#reply(id, async () => ({ exec: await this.#command(live, command, signal, onProgress) }));
    this.#execs.delete(id);
    if (!live.harness && live.commands.size === 0 && this.#runs.get(run) === live) this.#runs.delete(run);
  }

  async #reply(id: string, work: () => Promise<Omit<ControlReply, 'id'>>): Promise<void> {
    const { wire, sandboxToken, log } = this.#deps;
    const reply = await work().catch((error: unknown) => ({ error: wireError(error, 'dispatch_failed') }));
    await wire.post('control.reply', sandboxToken, { id, ...reply }).catch((error: Error) => log(`reply ${id}: ${error.message}`));
  }

  /** Ends every foreground process of the run; background ones stay. */
  async #forget(run: string): Promise<void> {
    const live = this.#runs.get(run);
    if (live === undefined) return;
    this.#runs.delete(run);
    live.forgotten.abort();
    live.cancel.abort();
    await Promise.allSettled(live.commands);
  }

  #command(
    live: LiveRun,
    command: ToolCommand,
    signal: AbortSignal,
    onProgress: (progress: CommandProgress) => void,
  ): Promise<CommandOutcome> {
    const running = this.#deps.run(command, signal, onProgress);
    live.commands.add(running);
    const done = () => live.commands.delete(running);
    running.then(done, done);
    return running;
  }

  #live(run: string): LiveRun {
    let live = this.#runs.get(run);
    if (live === undefined) {
      live = { cancel: new AbortController(), forgotten: new AbortController(), commands: new Set(), harness: false };
      this.#runs.set(run, live);
    }
    return live;
  }
}
